-- Makes one batch, wholly or not at all. Nothing is written before everything was judged.
--
-- ARGV[1] is the plan: {prefix, token's key, its life, time to live, changes kept or 0, whether indexes live here,
-- changes}; the rest are blobs, in the order in which the changes use them. Gives back a packed list: 1 and what became
-- of each change; or 0 and what could not be made: index and reason by turns; or 2, an index and two numbers;
-- or 3, a key that somebody else wrote, and its type; or 4, an index and the field of a header that is damaged.

local prefix, token, token_life, ttl, kept, has_indexes, changes = unpack(cmsgpack.unpack(ARGV[1]))

local done = redis.call('GET', token)
if done then
    return done -- an earlier attempt got through, and its answer did not
end

local function is_of_session(change)
    return change[1] == CHANGE_SESSION or change[1] == DELETE_SESSION
end

local headers, given, failures = {}, {}, {0}
for _, change in ipairs(changes) do
    local obstacle = not is_of_session(change)
        and (foreign_in_documents(change) or has_indexes and foreign(prefix .. ':categories', 'zset'))
    if obstacle then
        return cmsgpack.pack(obstacle)
    end
end
for index, change in ipairs(changes) do
    local op, reason = change[1], nil
    if is_of_session(change) then
        local header, obstacle = read_header(change[2])
        if obstacle then
            return cmsgpack.pack(obstacle)
        end
        headers[index] = header or false
        reason = objection(change[4], headers[index], op == CHANGE_SESSION and not change[5])
    elseif op ~= DELETE_CATEGORY then
        headers[index] = find_document(change) or false
        reason = objection(change[5], headers[index], false)
    end
    if reason then
        failures[#failures + 1] = index - 1
        failures[#failures + 1] = reason
    end
end
if #failures > 1 then
    return cmsgpack.pack(failures)
end

-- What stands in the way of listing a session.
local function foreign_in_indexes(change, there)
    local user = there and there.user or change[1] == CHANGE_SESSION and change[5][1] or ''
    return foreign(prefix .. ':newest', 'zset')
        or foreign(prefix .. ':newest:' .. encoded(user), 'zset')
        or not (there and change[1] == CHANGE_SESSION) and foreign(prefix .. ':ids', 'zset')
        or nil
end

local change_number
for index, change in ipairs(changes) do
    local header, obstacle = headers[index], nil
    if is_of_session(change) then
        local damage = change[1] == CHANGE_SESSION and header and damage_of(header)
        obstacle = damage and {4, index - 1, damage} or foreign_in_session(change, header)
            or has_indexes and foreign_in_indexes(change, header)
        if not obstacle and kept > 0 and not change_number then
            change_number, obstacle = last_change(prefix)
        end
    end
    if obstacle then
        return cmsgpack.pack(obstacle)
    end
end
for index, change in ipairs(changes) do
    if change[1] == CHANGE_SESSION then
        local number, last
        given[index], number, last = give_numbers(change, headers[index])
        if not given[index] then
            return cmsgpack.pack({2, index - 1, number, last})
        end
    end
end

local function list_session(id, user, old, new)
    local newest, newest_of_user = prefix .. ':newest', prefix .. ':newest:' .. encoded(user)
    if old ~= new then
        if new then
            redis.call('ZADD', newest, 0, new .. id)
            redis.call('ZADD', newest_of_user, 0, new .. id)
        end
        if old then
            redis.call('ZREM', newest, old .. id)
            redis.call('ZREM', newest_of_user, old .. id)
        end
    end
    if not new then
        redis.call('ZREM', prefix .. ':ids', id)
    elseif not old then
        redis.call('ZADD', prefix .. ':ids', 0, id)
    end
end

local function list_category(change)
    if redis.call('EXISTS', change[2]) == 1 then
        redis.call('ZADD', prefix .. ':categories', 0, change[#change])
    else
        redis.call('ZREM', prefix .. ':categories', change[#change])
    end
end

local function tell(what)
    change_number = change_number + 1
    redis.call('XADD', prefix .. ':changes', 'MAXLEN', '~', kept, string.format('%.0f-0', change_number), 'c',
        cmsgpack.pack(what))
    redis.call('SET', prefix .. ':change', string.format('%.0f', change_number))
end

local results = {1}
for index, change in ipairs(changes) do
    local op, outcome, listed, told = change[1], nil, nil, nil
    if op == CHANGE_SESSION then
        outcome, listed, told = change_session(change, headers[index], given[index], ttl)
    elseif op == DELETE_SESSION then
        outcome, listed, told = delete_session(change, headers[index])
    elseif op == PUT_DOCUMENT then
        outcome = put_document(change, headers[index])
    elseif op == DELETE_DOCUMENT then
        outcome = delete_document(change, headers[index])
    else
        outcome = delete_category(change)
    end
    if not has_indexes then
        outcome[5] = listed or false
    elseif listed then
        list_session(unpack(listed))
    elseif op ~= DELETE_SESSION then
        list_category(change)
    end
    if told and kept > 0 then
        tell(told)
    end
    results[index + 1] = outcome
end
local packed = cmsgpack.pack(results)
redis.call('SET', token, packed, 'PX', token_life)
return packed
