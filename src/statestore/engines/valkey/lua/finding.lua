-- Finding records by their numbers, in a list in which numbers rise.

local function number_of(record)
    return tonumber(string.sub(record, 2, 17)) or 0 -- one that is none of ours
end

-- How many records of a list have a number up to this one.
local function count_up_to(list, number)
    local low, high = 0, redis.call('LLEN', list)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if number_of(redis.call('LINDEX', list, middle)) <= number then
            low = middle + 1
        else
            high = middle
        end
    end
    return low
end
