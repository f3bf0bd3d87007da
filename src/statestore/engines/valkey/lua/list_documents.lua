-- What a category holds. ARGV: its name, where to begin, how many. Gives back members and sizes by turns.

local found = {}
for _, member in ipairs(redis.call('ZRANGEBYLEX', ARGV[1], ARGV[2], '+', 'LIMIT', 0, ARGV[3])) do
    local nul = string.find(member, '\0', 1, true)
    local key = ARGV[1] .. ':' .. string.sub(member, nul + 1) .. ':' .. string.sub(member, 1, nul - 1)
    found[#found + 1] = member
    found[#found + 1] = redis.call('HSTRLEN', key, 'body')
end
return found
