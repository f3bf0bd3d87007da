-- What kind of store there is: its version and its identity. Makes one if it is wanted and there is none.
--
-- KEYS[1]: where that is written. ARGV: our version, a new identity or '' to make nothing, whether sessions will expire.

if ARGV[2] ~= '' then
    redis.call('HSETNX', KEYS[1], 'version', ARGV[1])
    redis.call('HSETNX', KEYS[1], 'identity', ARGV[2])
end
if ARGV[3] == '1' and redis.call('HGET', KEYS[1], 'version') == ARGV[1] then
    redis.call('HSET', KEYS[1], 'expires', '1')
end
return redis.call('HMGET', KEYS[1], 'version', 'identity', 'expires')
