-- Everything of one session at one moment. ARGV: its name, and, where its indexes are at hand, its id and the prefix.
-- Gives back its header, records, metadata and keys: how many texts each of them has, how long each text is, all texts
-- in one; and whether each index has it. An index that is none of ours is not this session's fault.

local base = ARGV[1]
local listed = {}
if ARGV[2] then
    local place, user = unpack(redis.call('HMGET', base .. ':h', 'place', 'user'))
    local entry = (place or '') .. ARGV[2]
    listed = {
        redis.pcall('ZSCORE', ARGV[3] .. ':newest', entry) and 1 or 0,
        redis.pcall('ZSCORE', ARGV[3] .. ':newest:' .. encoded(user or ''), entry) and 1 or 0,
        redis.pcall('ZSCORE', ARGV[3] .. ':ids', ARGV[2]) and 1 or 0,
    }
end
local counts, lengths, texts = {}, {}, {}
local parts = {{'HGETALL', ':h'}, {'LRANGE', ':r', 0, -1}, {'HGETALL', ':m'}, {'ZRANGE', ':k', 0, -1, 'WITHSCORES'}}
for _, command in ipairs(parts) do
    local found = redis.call(command[1], base .. command[2], unpack(command, 3))
    counts[#counts + 1] = #found
    for _, text in ipairs(found) do
        lengths[#lengths + 1] = #text
        texts[#texts + 1] = text
    end
end
return {table.concat(counts, ' '), table.concat(lengths, ' '), table.concat(texts), table.concat(listed, ' ')}
