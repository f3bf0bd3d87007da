-- Documents of one category. ARGV: its name, about how many bytes are given at once, and the documents as it lists them.
--
-- Gives back what there is of as many of them as fit: a letter for each, 'g' if it is gone, 'f' if somebody else wrote its
-- key, 'l' if it is listed, 'u' if it is not; how long each body is, and all bodies in one text. A category that is none
-- of ours is not its documents' fault.

local base, left = ARGV[1], tonumber(ARGV[2])

local function look(member)
    local nul = string.find(member, '\0', 1, true)
    local body = redis.pcall('HGET', base .. ':' .. string.sub(member, nul + 1) .. ':' .. string.sub(member, 1, nul - 1),
        'body')
    if type(body) == 'table' then
        return string.find(body.err, 'WRONGTYPE', 1, true) and 'f' or error(body.err), ''
    elseif not body then
        return 'g', ''
    end
    return redis.pcall('ZSCORE', base, member) and 'l' or 'u', body
end

local marks, bodies = {}, {}
for place = 3, #ARGV do
    local mark, body = look(ARGV[place])
    marks[#marks + 1], bodies[#bodies + 1] = mark, body
    left = left - #body
    if left < 0 then
        break
    end
end
return {table.concat(marks), joined(bodies)}
