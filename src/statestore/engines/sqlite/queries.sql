-- A place is a session's number << 32 | a record's sequence number, as places.py has it; 0 is that of the title.

-- Writing ------------------------------------------------------------------------------------------------------------

-- name: header
SELECT number, id, user_id, version, created, updated, next_seq, users, agents, events, alternates, size, opening
FROM sessions WHERE id = ?;

-- name: headers
SELECT number, id, user_id, version, created, updated, next_seq, users, agents, events, alternates, size, opening
FROM sessions WHERE id IN (SELECT value FROM json_each(?));

-- name: insert_session
INSERT INTO sessions
    (id, user_id, version, created, updated, age, age_rest, next_seq, users, agents, events, alternates, size)
VALUES (?, ?, '', ?, ?, 0, 0, ?, 0, 0, 0, 0, 0);

-- name: update_session
UPDATE sessions SET version = ?, updated = ?, age = ?, age_rest = ?, next_seq = ?, users = ?, agents = ?, events = ?,
    alternates = ?, size = ?, opening = ? WHERE number = ? AND version = ?;

-- name: set_busy
UPDATE sessions SET is_busy = 1
WHERE number = ? AND is_busy = 0 AND (SELECT count(*) FROM sessions WHERE is_busy <> 0) < 256; -- listings sort them

-- name: set_idle
UPDATE sessions SET is_busy = 0 WHERE is_busy <> 0;

-- name: insert_record
INSERT INTO records (place, kind, body) VALUES (?, ?, ?);

-- name: insert_key
INSERT INTO keys (number, key, seq) VALUES (?, ?, ?);

-- name: seq_of_key
SELECT seq FROM keys WHERE number = ? AND key = ?;

-- name: note_appended
INSERT INTO changes (number, first, last) VALUES (?, ?, ?);

-- name: note_change
INSERT INTO changes (number, first, last, rewound_to, is_header) VALUES (?, ?, ?, ?, ?);

-- name: note_gone
INSERT INTO changes (number, gone_id, gone_user)
SELECT number, id, user_id FROM sessions WHERE number BETWEEN ? AND ? ORDER BY number;

-- name: size_beyond
SELECT kind, count(*), sum(length(CAST(body AS BLOB))) FROM records WHERE place BETWEEN ? AND ? GROUP BY kind;

-- name: delete_records
DELETE FROM records WHERE place BETWEEN ? AND ?;

-- name: delete_keys_after
DELETE FROM keys WHERE number = ? AND seq > ?;

-- name: delete_keys
DELETE FROM keys WHERE number BETWEEN ? AND ?;

-- name: delete_extras
DELETE FROM extras WHERE number BETWEEN ? AND ?;

-- name: delete_sessions
DELETE FROM sessions WHERE number BETWEEN ? AND ?;

-- name: metadata
SELECT metadata FROM extras WHERE number = ?;

-- name: put_metadata
INSERT INTO extras (number, metadata) VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET metadata = excluded.metadata;

-- name: put_layout
INSERT INTO extras (number, metadata, layout) VALUES (?, '{}', ?);

-- name: document_version
SELECT version FROM documents WHERE category = ? AND name = ? AND kind = ?;

-- name: put_document
INSERT OR REPLACE INTO documents (category, name, kind, version, body) VALUES (?, ?, ?, ?, ?);

-- name: size_of_document
SELECT CAST(total(length(body)) AS INTEGER) FROM documents WHERE category = ? AND name = ? AND kind = ?;

-- name: size_of_category
SELECT CAST(total(length(body)) AS INTEGER) FROM documents WHERE category = ?;

-- name: delete_document
DELETE FROM documents WHERE category = ? AND name = ? AND kind = ?;

-- name: delete_category
DELETE FROM documents WHERE category = ?;

-- name: last_change
SELECT max(change) FROM changes;

-- name: forget_changes
DELETE FROM changes WHERE change <= ?;

-- Reading ------------------------------------------------------------------------------------------------------------

-- name: session
SELECT number, version, next_seq, users, alternates,
    user_id, created, updated, active_seed_id, active_persona_id, project_id, parent_session_id
FROM sessions WHERE id = ?;

-- name: extras
SELECT metadata, layout FROM extras WHERE number = ?;

-- name: bodies
SELECT CAST(group_concat(body) FILTER (WHERE kind = 0) AS BLOB), CAST(group_concat(body) FILTER (WHERE kind = 1) AS BLOB),
    CAST(group_concat(body) FILTER (WHERE kind = 2) AS BLOB)
FROM records WHERE place BETWEEN ? AND ?;

-- name: kinds
SELECT place, kind FROM records WHERE place BETWEEN ? AND ?;

-- name: first_of_last
SELECT min(place) FROM (SELECT place FROM records WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT ?);

-- name: keys
SELECT seq, key FROM keys WHERE number = ? AND seq BETWEEN ? AND ?;

-- name: document
SELECT body, version FROM documents WHERE category = ? AND name = ? AND kind = ?;

-- name: documents
SELECT name, kind, length(body) FROM documents WHERE category = ? AND (name, kind) > (?, ?) ORDER BY name, kind LIMIT ?;

-- name: categories
SELECT DISTINCT category FROM documents ORDER BY category;

-- Searching ----------------------------------------------------------------------------------------------------------

-- name: indexing_state
SELECT rules, change, swept, (SELECT min(change) FROM changes), (SELECT max(change) FROM changes) FROM indexing;

-- name: set_indexing_state
UPDATE indexing SET rules = ?, change = ?, swept = ?;

-- name: changes_to_index
SELECT change, number, rewound_to, gone_id IS NOT NULL FROM changes WHERE change > ? ORDER BY change LIMIT ?;

-- name: sessions_to_index
SELECT number FROM sessions WHERE number > ? ORDER BY number LIMIT ?;

-- name: indexed_session
SELECT sessions.title, indexed.seq, indexed.change, indexed.title
FROM sessions LEFT JOIN indexed ON indexed.number = sessions.number WHERE sessions.number = ?;

-- name: records_to_index
SELECT place, kind, CAST(body AS BLOB) FROM records WHERE place BETWEEN ? AND ? ORDER BY place;

-- name: set_indexed
INSERT INTO indexed (number, seq, change, title) VALUES (?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET seq = excluded.seq, change = excluded.change, title = excluded.title;

-- name: forget_indexed
DELETE FROM indexed WHERE number = ?;

-- name: found_records
SELECT place, sessions.id, user_id, coalesce(title, opening), kind, CAST(body AS BLOB)
FROM json_each(?) JOIN records ON place = value JOIN sessions ON number = place >> 32;

-- name: found_titles
SELECT number << 32, sessions.id, user_id, coalesce(title, opening), NULL, title
FROM json_each(?) JOIN sessions ON number = value >> 32 WHERE value & 0xffffffff = 0 AND title IS NOT NULL;

-- Watching -----------------------------------------------------------------------------------------------------------

-- name: changes_kept
SELECT (SELECT min(change) FROM changes), (SELECT max(change) FROM changes);

-- name: identity
SELECT id FROM identity;

-- name: set_identity
UPDATE identity SET id = lower(hex(randomblob(8)));

-- name: changes
SELECT change, number, first, last, rewound_to, is_header, gone_id, gone_user, id, user_id, created
FROM changes LEFT JOIN sessions USING (number) WHERE change > :after
    AND (:session_id IS NULL OR number = (SELECT number FROM sessions WHERE id = :session_id) OR gone_id = :session_id)
    AND (:user_id IS NULL OR user_id = :user_id OR gone_user = :user_id)
ORDER BY change LIMIT :limit;

-- name: added_records
SELECT place, kind, CAST(body AS BLOB) FROM records WHERE place BETWEEN ? AND ?;

-- Checking -----------------------------------------------------------------------------------------------------------

-- name: check_sessions
SELECT sessions.number, id, version, created, updated, age, age_rest, next_seq, users, agents, events, alternates, size,
    CAST(coalesce(metadata, '{}') AS BLOB), layout
FROM sessions LEFT JOIN extras ON extras.number = sessions.number ORDER BY id;

-- name: check_labels
SELECT id, user_id, active_seed_id, active_persona_id, project_id, parent_session_id, title, project, projects, opening,
    metadata
FROM sessions LEFT JOIN extras USING (number) ORDER BY id;

-- name: check_records
SELECT place, kind, CAST(body AS BLOB) FROM records WHERE place BETWEEN ? AND ? ORDER BY place;

-- name: check_strays
SELECT 'records', place >> 32 AS number, count(*) FROM records
    WHERE place >> 32 NOT IN (SELECT number FROM sessions) GROUP BY place >> 32
UNION ALL SELECT 'keys', number, count(*) FROM keys
    WHERE number NOT IN (SELECT number FROM sessions) GROUP BY number
UNION ALL SELECT 'extras', number, count(*) FROM extras
    WHERE number NOT IN (SELECT number FROM sessions) GROUP BY number;

-- name: check_keys
SELECT id, key, seq FROM keys JOIN sessions USING (number)
WHERE NOT EXISTS (SELECT 1 FROM records WHERE place = sessions.number << 32 | seq);

-- name: check_documents
SELECT category, name, kind, body FROM documents ORDER BY category, name, kind;
