-- How many records are read at once: meanwhile the server does nothing else.

-- As many as have these bytes, going by the size of their session, but not more than there are to be at most.
local function page_of(list, size, most, bytes)
    return math.max(1, math.min(most, math.floor(bytes * redis.call('LLEN', list) / (tonumber(size) or 0))))
end
