-- Sessions. Of one with the name B there are: B:h its header, a hash; B:r its records, a list; B:k its idempotency
-- keys, a sorted set by the numbers of their records; B:m its metadata, a hash.
--
-- A record is one text: its column (u, a or e), its number in 16 digits, its body.
-- A metadata key is the JSON text of its name; its value begins with its place in the order, and a colon.

local MOST_ARGUMENTS = 1000 -- Lua hands over some thousands at most
local LONGEST_LIFE = 3000000000000
local COUNTS = {u = 'users', a = 'agents', e = 'events'}

-- The header of a session, or nil; and what stands in the way of reading it.
local function read_header(base)
    local found = redis.pcall('HMGET', base .. ':h', 'version', 'user', 'created', 'updated', 'place', 'next', 'users',
        'agents', 'events', 'size', 'opening', 'born', 'ttl', 'meta')
    if found.err then
        return nil, foreign(base .. ':h', 'hash') or error(found.err)
    end
    if not found[1] then
        return nil
    end
    return {
        version = found[1], user = found[2], created = found[3], updated = found[4], place = found[5],
        next = tonumber(found[6]), users = tonumber(found[7]), agents = tonumber(found[8]), events = tonumber(found[9]),
        size = tonumber(found[10]), opening = found[11], born = found[12],
        ttl = tonumber(found[13] or '0'), meta = tonumber(found[14] or '0'),
    }
end

-- The first field of a header that we cannot count on, or nil.
local function damage_of(header)
    for _, name in ipairs({'next', 'users', 'agents', 'events', 'size', 'meta', 'ttl'}) do
        local number = header[name]
        if not number or number ~= math.floor(number) or number < 0 or number > LAST_NUMBER + 1 then
            return name
        end
    end
    for _, name in ipairs({'user', 'place', 'updated'}) do
        if not header[name] then
            return name
        end
    end
    return header.ttl > LONGEST_LIFE and 'ttl' or nil
end

-- The number that each appended record gets, and which of them are new; or nil and the number that cannot be given.
local function give_numbers(change, header)
    local base, truncate, records = change[2], change[9], change[10]
    local numbers, is_new, seen = {}, {}, {}
    local following, last
    if header then
        following = header.next
        last = following - 1
    else
        following = change[5][4]
        last = 0
    end
    for index, record in ipairs(records) do
        local key, number = record[3], nil
        if key then
            number = seen[key]
            if not number and header then
                number = tonumber(redis.call('ZSCORE', base .. ':k', key) or nil)
                if number and truncate and number > truncate then
                    number = nil
                end
            end
        end
        if not number then
            number = record[2] or math.max(following, last + 1)
            if number <= last or number > LAST_NUMBER then
                return nil, number, last
            end
            last = number
            following = math.max(following, number + 1)
            is_new[index] = true
            if key then
                seen[key] = number
            end
        end
        numbers[index] = number
    end
    return {numbers = numbers, is_new = is_new, following = following}
end

local function truncate_records(base, header, after)
    local list = base .. ':r'
    local kept = count_up_to(list, after)
    for _, record in ipairs(redis.call('LRANGE', list, kept, -1)) do
        local count = COUNTS[string.sub(record, 1, 1)]
        if count then -- else it is none of ours
            header[count] = header[count] - 1
        end
        header.size = header.size - (#record - 17)
    end
    if kept == 0 then
        redis.call('UNLINK', list)
    else
        redis.call('LTRIM', list, 0, kept - 1)
    end
    redis.call('ZREMRANGEBYSCORE', base .. ':k', string.format('(%.0f', after), '+inf')
end

-- Add the new ones of the records; their first and last number.
local function append_records(base, header, records, given)
    local entries, first, last = {}, nil, nil
    for index, record in ipairs(records) do
        local body = next_blob()
        if given.is_new[index] then
            local number = given.numbers[index]
            entries[#entries + 1] = record[1] .. string.format('%016.0f', number) .. body
            if #entries == MOST_ARGUMENTS then
                redis.call('RPUSH', base .. ':r', unpack(entries))
                entries = {}
            end
            if record[3] then
                redis.call('ZADD', base .. ':k', number, record[3])
            end
            if record[4] and not header.opening then
                header.opening = record[4]
            end
            local count = COUNTS[record[1]]
            header[count] = header[count] + 1
            header.size = header.size + #body
            first = first or number
            last = number
        end
    end
    if #entries > 0 then
        redis.call('RPUSH', base .. ':r', unpack(entries))
    end
    header.next = given.following
    return first, last
end

local function change_metadata(base, header, names, gone)
    local hash = base .. ':m'
    local count = redis.call('HLEN', hash)
    local size = header.size - math.max(count - 1, 0)
    for _, name in ipairs(names) do
        local text = next_blob()
        local old = redis.call('HGET', hash, name)
        local order
        if old then
            local colon = string.find(old, ':', 1, true) or 0
            order = string.sub(old, 1, colon)
            size = size - (#old - colon)
        else
            header.meta = header.meta + 1
            order = string.format('%.0f:', header.meta)
            redis.call('HSET', base .. ':h', 'meta', header.meta)
            size = size + #name + 1
            count = count + 1
        end
        redis.call('HSET', hash, name, order .. text)
        size = size + #text
    end
    for _, name in ipairs(gone) do
        local old = redis.call('HGET', hash, name)
        if old then
            redis.call('HDEL', hash, name)
            size = size - #name - 1 - (#old - (string.find(old, ':', 1, true) or 0))
            count = count - 1
        end
    end
    header.size = size + math.max(count - 1, 0)
end

-- Set and unset fields; `opening` lives in the header that is written last.
local function change_fields(base, header, fields)
    for index = 1, #fields, 2 do
        local name, value = fields[index], fields[index + 1]
        if name == 'opening' then
            header.opening = value
            if not value then
                redis.call('HDEL', base .. ':h', name)
            end
        elseif value then
            redis.call('HSET', base .. ':h', name, value)
        else
            redis.call('HDEL', base .. ':h', name)
        end
    end
end

local function create_session(base, change, layout)
    local create = change[5]
    local fields = {'id', change[3], 'user', create[1], 'created', create[2], 'born', change[8], 'era', change[8]}
    if layout then
        fields[#fields + 1] = 'layout'
        fields[#fields + 1] = layout
    end
    redis.call('HSET', base .. ':h', unpack(fields)) -- first: if the memory is full, this is refused
    redis.call('UNLINK', base .. ':r', base .. ':k', base .. ':m') -- what an expired one may have left
    return {
        user = create[1], created = create[2], updated = change[7], next = create[4], users = 0, agents = 0,
        events = 0, size = 2, born = change[8], ttl = 0, meta = 0,
    }
end

local function write_header(base, header)
    local fields = {
        'version', header.version, 'updated', header.updated, 'place', header.place, 'next', header.next,
        'users', header.users, 'agents', header.agents, 'events', header.events, 'size', header.size,
    }
    if header.opening then
        fields[#fields + 1] = 'opening'
        fields[#fields + 1] = header.opening
    end
    redis.call('HSET', base .. ':h', unpack(fields))
end

-- Make a change of a session that was judged: what became of it, and where it is listed before and after.
local function change_session(change, header, given, ttl)
    local base = change[2]
    local before = header and header.version or false
    local place = header and header.place or false
    local is_header = not header or #change[11] > 0 or #change[12] > 0 or #change[13] > 0
    local layout = change[5] and change[5][3] and next_blob() -- it comes before the records, wanted or not
    header = header or create_session(base, change, layout)
    local first, last
    if change[9] then
        truncate_records(base, header, change[9])
        redis.call('HSET', base .. ':h', 'era', change[8])
    end
    if #change[10] > 0 then
        first, last = append_records(base, header, change[10], given)
    end
    if #change[11] > 0 then
        change_fields(base, header, change[11])
    end
    if #change[12] > 0 or #change[13] > 0 then
        change_metadata(base, header, change[12], change[13])
    end
    if not header.place or change[6] < header.place then -- a place that sorts first is a later moment
        header.place, header.updated = change[6], change[7]
    end
    header.version = change[8]
    write_header(base, header)
    if ttl > 0 and header.ttl ~= ttl then
        redis.call('HSET', base .. ':h', 'ttl', ttl)
    end
    local life = ttl > 0 and ttl or header.ttl
    if life > 0 then
        for _, part in ipairs({':h', ':r', ':k', ':m'}) do
            redis.call('PEXPIRE', base .. part, life)
        end
    end
    local outcome = {before, header.version, given.numbers, 0}
    local told = {change[3], header.born, header.user, first or false, last or false, change[9], is_header, false}
    return outcome, {change[3], header.user, place, header.place}, told
end

local function delete_session(change, header)
    if not header then
        return {false, false, {}, 0}
    end
    local base = change[2]
    redis.call('UNLINK', base .. ':h', base .. ':r', base .. ':k', base .. ':m')
    local user = header.user or ''
    local told = {change[3], header.born, user, false, false, false, false, true}
    return {header.version, false, {}, 1}, {change[3], user, header.place, false}, told
end
