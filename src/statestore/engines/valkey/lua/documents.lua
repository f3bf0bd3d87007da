-- Documents. A category with the name C is a sorted set of "name NUL kind"; C:kind:name is a document, a hash.

local function find_document(change)
    local version = redis.call('HGET', change[2] .. ':' .. change[4] .. ':' .. change[3], 'version')
    return version and {version = version} or nil
end

local function foreign_in_documents(change)
    return foreign(change[2], 'zset')
        or change[1] ~= DELETE_CATEGORY and foreign(change[2] .. ':' .. change[4] .. ':' .. change[3], 'hash')
        or nil
end

local function put_document(change, there)
    local key = change[2] .. ':' .. change[4] .. ':' .. change[3]
    redis.call('HSET', key, 'version', change[6], 'body', next_blob())
    redis.call('ZADD', change[2], 0, change[3] .. '\0' .. change[4])
    return {there and there.version or false, change[6], {}, 0}
end

local function delete_document(change, there)
    if not there then
        return {false, false, {}, 0}
    end
    redis.call('UNLINK', change[2] .. ':' .. change[4] .. ':' .. change[3])
    redis.call('ZREM', change[2], change[3] .. '\0' .. change[4])
    return {there.version, false, {}, 1}
end

local function delete_category(change)
    local base = change[2]
    local members = redis.call('ZRANGE', base, 0, -1)
    for _, member in ipairs(members) do
        local nul = string.find(member, '\0', 1, true)
        if nul then -- else it is none of ours
            redis.call('UNLINK', base .. ':' .. string.sub(member, nul + 1) .. ':' .. string.sub(member, 1, nul - 1))
        end
    end
    redis.call('UNLINK', base)
    return {false, false, {}, #members}
end
