-- The writes of one exchange, and nothing else. KEYS: header, records, two indexes, counter, stream, token.
redis.call('RPUSH', KEYS[2], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[1], 'version', ARGV[3], 'updated', ARGV[4], 'place', ARGV[5], 'next', ARGV[6], 'users', 1,
    'agents', 1, 'events', 0, 'size', 1000, 'opening', 'The quick brown fox')
for index = 3, 4 do
    redis.call('ZADD', KEYS[index], 0, ARGV[5] .. 'session')
    redis.call('ZREM', KEYS[index], ARGV[7] .. 'session')
end
local number = redis.call('INCR', KEYS[5])
redis.call('XADD', KEYS[6], 'MAXLEN', '~', 100000, string.format('%.0f-0', number), 'c', 'session, first, last')
redis.call('SET', KEYS[7], ARGV[3], 'PX', 3600000)
return ARGV[3]
