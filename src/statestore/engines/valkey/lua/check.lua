-- Everything of one session at one moment. ARGV: its name, and, where its indexes are at hand, its id and the prefix.
-- Gives back its header, records, metadata and keys, and whether each index has it.

local base = ARGV[1]
local header = redis.call('HGETALL', base .. ':h')
local listed = {}
if ARGV[2] then
    local place, user = unpack(redis.call('HMGET', base .. ':h', 'place', 'user'))
    local entry = (place or '') .. ARGV[2]
    listed = {
        redis.call('ZSCORE', ARGV[3] .. ':newest', entry) and 1 or 0,
        redis.call('ZSCORE', ARGV[3] .. ':newest:' .. encoded(user or ''), entry) and 1 or 0,
        redis.call('ZSCORE', ARGV[3] .. ':ids', ARGV[2]) and 1 or 0,
    }
end
return {header, redis.call('LRANGE', base .. ':r', 0, -1), redis.call('HGETALL', base .. ':m'),
    redis.call('HGETALL', base .. ':k'), listed}
