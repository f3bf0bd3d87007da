-- Keys of ours that somebody else wrote. A write to one would fail, and a script cannot take back what it did before:
-- so what a batch will write is looked at first.

-- What is told of a key that is none of ours; nil if it is, or if there is none.
local function foreign(key, kind)
    local found = redis.call('TYPE', key).ok
    if found ~= kind and found ~= 'none' then
        return {3, key, found}
    end
    return nil
end

-- What stands in the way of a change of a session, going by its own keys: those that are only removed may be anything.
local function foreign_in_session(change, there)
    local base, truncate, records = change[2], change[9], change[10]
    if change[1] ~= CHANGE_SESSION or not there then
        return nil
    end
    local has_keys = truncate
    for _, record in ipairs(records) do
        has_keys = has_keys or record[3]
    end
    return (#records > 0 or truncate) and foreign(base .. ':r', 'list')
        or has_keys and foreign(base .. ':k', 'zset')
        or (#change[12] > 0 or #change[13] > 0) and foreign(base .. ':m', 'hash')
        or nil
end

-- The number of the last change; or nil and what stands in the way of telling more.
local function last_change(prefix)
    local number_key, stream = prefix .. ':change', prefix .. ':changes'
    local text, newest = redis.pcall('GET', number_key), redis.pcall('XREVRANGE', stream, '+', '-', 'COUNT', 1)
    if newest.err or (text and type(text) == 'table') then -- rare, and the types are asked for only then
        return nil, foreign(number_key, 'string') or foreign(stream, 'stream')
            or error(newest.err or text.err)
    end
    local number = tonumber(text or '0')
    if not number or number < 0 or number >= LAST_NUMBER or number ~= math.floor(number) then
        return nil, {3, number_key, 'string'}
    end
    local told = newest[1] and tonumber(string.match(newest[1][1], '^%d+')) or 0
    if told >= LAST_NUMBER then
        return nil, {3, stream, 'stream'}
    end
    return math.max(number, told)
end
