-- One page of a listing: walks an index and gives back the headers that a query selects.
--
-- ARGV[1]: {prefix, index, whether it is by id, how many entries to look at, user, project, parent, whether only sessions
-- without a parent, the place of the oldest, whether to remove entries of sessions that are gone, whether only to count};
-- ARGV[2] and [3]: where to begin and to end. Gives back the headers, or their number, and the last entry
-- looked at if there may be more.

local prefix, index, is_by_id, most, user, project, parent, is_top_level, oldest, may_clean, only_counts =
    unpack(cmsgpack.unpack(ARGV[1]))
local entries = redis.call('ZRANGEBYLEX', index, ARGV[2], ARGV[3], 'LIMIT', 0, most)
local found, count = {}, 0

local function is_selected(header)
    return (not user or header[2] == user)
        and (not project or (header[10] or header[11] or header[12]) == project)
        and (not parent or header[13] == parent)
        and not (is_top_level and header[13])
        and (not oldest or header[18] <= oldest)
end

for _, entry in ipairs(entries) do
    local id = is_by_id and entry or string.sub(entry, 22)
    local header = redis.call('HMGET', prefix .. ':s:{' .. encoded(id) .. '}:h', 'id', 'user', 'users', 'created', 'updated',
        'agents', 'events', 'active_seed_id', 'active_persona_id', 'project_id', 'project', 'projects',
        'parent_session_id', 'title', 'opening', 'size', 'version', 'place')
    if not header[17] or not (is_by_id or header[18] == string.sub(entry, 1, 21)) then
        if may_clean then
            redis.call('ZREM', index, entry)
        end
    elseif is_selected(header) then
        count = count + 1
        if not only_counts then
            found[count] = header
        end
    end
end
return {only_counts and count or cmsgpack.pack(found), #entries == most and entries[most]}
