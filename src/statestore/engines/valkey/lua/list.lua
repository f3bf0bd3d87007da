-- One page of a listing: walks an index and gives back the headers that a query selects.
--
-- ARGV[1]: {prefix, index, whether it is by id, how many entries to look at or false if they are named, user, project,
-- parent, whether only sessions without a parent, the place of the oldest, whether to remove entries of sessions that are
-- gone, whether only to count}; ARGV[2] and [3]: where to begin and to end; or all from ARGV[2] on: entries that the index
-- had, whose sessions may be elsewhere in it by now. Gives back the headers, of one that is damaged only the id, or their
-- number, and the last entry looked at if there may be more.

local prefix, index, is_by_id, most, user, project, parent, is_top_level, oldest, may_clean, only_counts =
    unpack(cmsgpack.unpack(ARGV[1]))
local entries = most and redis.call('ZRANGEBYLEX', index, ARGV[2], ARGV[3], 'LIMIT', 0, most) or {unpack(ARGV, 2)}
local found, count = {}, 0

local function read_header(id)
    local header = redis.pcall('HMGET', prefix .. ':s:{' .. encoded(id) .. '}:h', 'id', 'user', 'users', 'created',
        'updated', 'agents', 'events', 'active_seed_id', 'active_persona_id', 'project_id', 'project', 'projects',
        'parent_session_id', 'title', 'opening', 'size', 'version', 'place')
    if header.err and not string.find(header.err, 'WRONGTYPE', 1, true) then
        error(header.err)
    end
    return header
end

-- Whether there is something of which no line of a listing can be made.
local function is_damaged(header, id)
    local is_whole = header[1] == id and header[2] and header[17] and header[18]
    return header.err or not is_whole and (header[1] or header[2] or header[17] or header[18])
end

local function is_selected(header)
    return (not user or header[2] == user)
        and (not project or (header[10] or header[11] or header[12]) == project)
        and (not parent or header[13] == parent)
        and not (is_top_level and header[13])
        and (not oldest or header[18] <= oldest)
end

-- Remove an entry of a session that is gone, or elsewhere, from this index, and from others that it is known to be in.
-- If one of those is none of ours, that is not this listing's fault.
local function clean(entry, id, is_gone)
    redis.call('ZREM', index, entry)
    if not is_by_id then
        redis.pcall('ZREM', prefix .. ':newest', entry)
    end
    if is_gone then
        redis.pcall('ZREM', prefix .. ':ids', id)
    end
end

for _, entry in ipairs(entries) do
    local id = is_by_id and entry or string.sub(entry, 22)
    local header = read_header(id)
    if is_damaged(header, id) then
        found[#found + 1] = {id}
    elseif not header[17] or most and not (is_by_id or header[18] == string.sub(entry, 1, 21)) then
        if may_clean then
            clean(entry, id, not header[17])
        end
    elseif is_selected(header) then
        count = count + 1
        found[#found + 1] = header
    end
end
return {only_counts and count or cmsgpack.pack(found), #entries == most and entries[most]}
