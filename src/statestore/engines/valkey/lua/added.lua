-- What there still is of the records that a change of a session added. ARGV: the session's name, the numbers of the first
-- and the last of them, and how many are given at most.
--
-- Gives back nothing if there is no session; else what tells it from others of that id, and the records joined by a byte
-- that no text has.

local base, first, last, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local version, born = unpack(redis.call('HMGET', base .. ':h', 'version', 'born'))
if not version then
    return false
end
local records = {}
if most > 0 then
    local place = count_up_to(base .. ':r', first - 1)
    local stop = math.min(count_up_to(base .. ':r', last), place + most) -- a change that was rewound has fewer left
    if stop > place then
        records = redis.call('LRANGE', base .. ':r', place, stop - 1)
    end
end
return {born, table.concat(records, '\255')}
