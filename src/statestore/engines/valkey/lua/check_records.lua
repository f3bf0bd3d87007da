-- More records of a session that is looked at. ARGV: its name, its era, the places of the first one and of the last one.
-- Gives back nothing if it is in another era by now; else how long each record is, and all of them in one text.

local base = ARGV[1]
if (redis.call('HGET', base .. ':h', 'era') or '') ~= ARGV[2] then
    return false
end
return {joined(redis.call('LRANGE', base .. ':r', ARGV[3], ARGV[4]))}
