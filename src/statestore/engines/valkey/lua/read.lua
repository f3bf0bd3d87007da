-- Reads one session at one moment. ARGV: its name; the numbers that records are above and below, and how many of the
-- last ones are wanted at most, each -1 for any; how many are given at once at most, and about how many bytes; and, to go
-- on, the era and the first and the last place in the list.
--
-- Gives back nothing if there is no session, or if it is in another era by now; else its header, its layout, the
-- records joined by a byte that no text has, where the next ones are, the metadata, and the keys with their numbers.

local base = ARGV[1]
local after, before, last = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local era, first_place, last_place = ARGV[7], tonumber(ARGV[8] or nil), tonumber(ARGV[9] or nil)

local header = redis.call('HMGET', base .. ':h', 'version', 'next', 'users', 'user', 'created', 'updated',
    'active_seed_id', 'active_persona_id', 'project_id', 'parent_session_id', 'era', 'size')
local size = table.remove(header)
if not header[1] or (era and era ~= header[11]) then
    return false
end
local list = base .. ':r'
if not era then
    first_place = after < 0 and 0 or count_up_to(list, after)
    last_place = (before < 0 and redis.call('LLEN', list) or count_up_to(list, before - 1)) - 1
    if last >= 0 then
        first_place = math.max(first_place, last_place - last + 1)
    end
end
local most = page_of(list, size, tonumber(ARGV[5]), tonumber(ARGV[6]))
local place = math.min(last_place, first_place + most - 1)
local records = place < first_place and {} or redis.call('LRANGE', list, first_place, place)
local joined = table.concat(records, '\255')
if era then
    return {joined, place + 1}
end
local keys = {}
if #records > 0 then
    local lowest = string.format('%.0f', number_of(records[1]))
    local highest = before < 0 and '+inf' or string.format('(%.0f', before)
    keys = redis.call('ZRANGEBYSCORE', base .. ':k', lowest, highest, 'WITHSCORES')
end
local layout = redis.call('HGET', base .. ':h', 'layout')
return {cmsgpack.pack(header), layout, joined, place + 1, last_place, redis.call('HGETALL', base .. ':m'), keys}
