-- Everything of one session at one moment, but of its records only the first ones. ARGV: its name, how many records are
-- given at most, and about how many bytes; and, where its indexes are at hand, its id and the prefix.
--
-- Gives back its header, its first records, its metadata and its keys: how many texts each of them has, how long each
-- text is, all texts in one; how many records there are; and whether each index has it. An index that is none of ours is
-- not this session's fault.

local base = ARGV[1]
local size, place, user = unpack(redis.call('HMGET', base .. ':h', 'size', 'place', 'user'))
local listed = {}
if ARGV[4] then
    local entry = (place or '') .. ARGV[4]
    listed = {
        redis.pcall('ZSCORE', ARGV[5] .. ':newest', entry) and 1 or 0,
        redis.pcall('ZSCORE', ARGV[5] .. ':newest:' .. encoded(user or ''), entry) and 1 or 0,
        redis.pcall('ZSCORE', ARGV[5] .. ':ids', ARGV[4]) and 1 or 0,
    }
end
local most = page_of(base .. ':r', size, tonumber(ARGV[2]), tonumber(ARGV[3]))
local counts, texts = {}, {}
local parts = {
    {'HGETALL', ':h'}, {'LRANGE', ':r', 0, most - 1}, {'HGETALL', ':m'}, {'ZRANGE', ':k', 0, -1, 'WITHSCORES'},
}
for _, command in ipairs(parts) do
    local found = redis.call(command[1], base .. command[2], unpack(command, 3))
    counts[#counts + 1] = #found
    for _, text in ipairs(found) do
        texts[#texts + 1] = text
    end
end
local lengths, text = joined(texts)
return {table.concat(counts, ' '), lengths, text, redis.call('LLEN', base .. ':r'), table.concat(listed, ' ')}
