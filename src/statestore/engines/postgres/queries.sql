-- Opening ------------------------------------------------------------------------------------------------------------

-- name: server
-- Not to_regclass: that may not have heard yet of what was made while we waited for a lock.
SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'),
    current_setting('search_path'), EXISTS (
    SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = $1 AND relname = 'store'
);

-- name: lock_schema
SELECT pg_advisory_xact_lock(hashtextextended($1, 0));

-- name: schema_exists
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1);

-- name: set_version
UPDATE store SET version = $1;

-- name: clock
SELECT extract(epoch FROM clock_timestamp())::double precision;

-- Writing ------------------------------------------------------------------------------------------------------------

-- name: append_to_sessions
SELECT append_to_sessions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20);

-- name: make_batches
SELECT make_batches(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25,
    $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46
);

-- name: tidy_up
SELECT tidy_up($1);

-- Reading ------------------------------------------------------------------------------------------------------------

-- name: session
SELECT -1::bigint AS seq, NULL::smallint AS kind, layout AS body, version AS key,
    ARRAY[next_seq, users] AS numbers, ARRAY[user_id, created, updated] AS texts,
    ARRAY[active_seed_id, active_persona_id, project_id, parent_session_id,
        (SELECT string_agg(member, ',' ORDER BY place) FROM metadata WHERE metadata.id = sessions.id)] AS fields
FROM sessions WHERE id = $1
UNION ALL
SELECT seq, kind, body, key, NULL, NULL, NULL FROM records WHERE id = $1 AND seq > $2 AND seq < $3
ORDER BY seq;

-- name: session_with_last
SELECT -1::bigint AS seq, NULL::smallint AS kind, layout AS body, version AS key,
    ARRAY[next_seq, users] AS numbers, ARRAY[user_id, created, updated] AS texts,
    ARRAY[active_seed_id, active_persona_id, project_id, parent_session_id,
        (SELECT string_agg(member, ',' ORDER BY place) FROM metadata WHERE metadata.id = sessions.id)] AS fields
FROM sessions WHERE id = $1
UNION ALL
SELECT * FROM (
    SELECT seq, kind, body, key, NULL::bigint[], NULL::text[], NULL::bytea[] FROM records
    WHERE id = $1 AND seq > $2 AND seq < $3 ORDER BY seq DESC LIMIT $4
) AS last
ORDER BY seq;

-- name: small_sessions
-- Those of some sessions that have no more than so many bytes, each with all of its records behind it. The records are
-- looked up session by session: joined at once, it might be all records that there are.
WITH small AS MATERIALIZED (SELECT * FROM sessions WHERE id = ANY ($1) AND size <= $2)
SELECT -1::bigint AS seq, NULL::smallint AS kind, layout AS body, version AS key,
    ARRAY[next_seq, users] AS numbers, ARRAY[user_id, created, updated] AS texts,
    ARRAY[active_seed_id, active_persona_id, project_id, parent_session_id,
        (SELECT string_agg(member, ',' ORDER BY place) FROM metadata WHERE metadata.id = small.id)] AS fields, id
FROM small
UNION ALL
SELECT all_of_it.*, NULL, NULL, NULL, id FROM small, LATERAL (
    SELECT seq, kind, body, key FROM records WHERE records.id = small.id AND seq > -1 OFFSET 0
) AS all_of_it
ORDER BY id, seq;

-- name: document
SELECT body, version FROM documents WHERE category = $1 AND name = $2 AND kind = $3;

-- name: small_documents
SELECT category, name, kind, body, documents.version
FROM unnest($2::text[], $3::text[]) AS asked (name, kind) JOIN documents USING (name, kind)
WHERE category = $1 AND length(body) <= $4;

-- name: documents
SELECT name, kind, length(body) FROM documents WHERE category = $1 ORDER BY name, kind LIMIT $2;

-- name: documents_after
SELECT name, kind, length(body) FROM documents
WHERE category = $1 AND (name, kind) > ($3, $4) ORDER BY name, kind LIMIT $2;

-- name: categories
-- The named one, and those that begin with something: from each straight to the next, whatever each holds.
WITH RECURSIVE below AS (
    (SELECT category FROM documents WHERE category >= $2 ORDER BY category LIMIT 1)
    UNION ALL
    SELECT (SELECT category FROM documents WHERE category > below.category ORDER BY category LIMIT 1)
    FROM below WHERE starts_with(category, $2)
)
(SELECT category FROM documents WHERE category = $1 LIMIT 1)
UNION ALL
SELECT category FROM below WHERE starts_with(category, $2) ORDER BY category;

-- Watching -----------------------------------------------------------------------------------------------------------

-- name: horizon
SELECT identity, forgotten, horizon(), coalesce((SELECT max(change) FROM changes), forgotten) FROM store;

-- name: watch
-- Whether nobody watched until now, the first transaction that has not ended, and the horizon: the rest of the statement
-- does not see what its first part writes.
WITH renewed AS (
    UPDATE watched SET until = now() + interval '30 seconds' WHERE until < now() + interval '15 seconds'
)
SELECT until < now(), pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
    identity, forgotten, horizon(), coalesce((SELECT max(change) FROM changes), forgotten)
FROM watched, store;

-- name: latest_transaction
-- A new one: all that are under way have begun before it.
SELECT pg_current_xact_id()::text::bigint;

-- name: changes
WITH now AS MATERIALIZED (SELECT identity, forgotten, horizon() AS settled FROM store)
SELECT identity, forgotten, settled, told.* FROM now LEFT JOIN LATERAL (
    SELECT change, changes.number, first, last, rewound_to, is_header::integer,
        CASE WHEN gone_user IS NOT NULL THEN changes.id END, gone_user, sessions.id, sessions.user_id, sessions.created
    FROM changes LEFT JOIN sessions ON sessions.id = changes.id AND sessions.number = changes.number
    WHERE change > $1 AND change <= settled AND ($3::text IS NULL OR changes.id = $3)
        AND ($4::text IS NULL OR $4 IN (sessions.user_id, gone_user)) ORDER BY change LIMIT $2
) AS told ON true ORDER BY change;

-- name: added_records
-- Change by change, so that each looks at its own records: joined at once, it would be all records of the session.
SELECT forgotten, added.* FROM store LEFT JOIN (
    SELECT change, seq, kind, body
    FROM changes JOIN sessions USING (id, number), LATERAL (
        SELECT seq, kind, body FROM records
        WHERE records.id = changes.id AND seq BETWEEN first AND last
            AND seq > CASE change WHEN $2 THEN $3::bigint ELSE 0 END
        ORDER BY seq LIMIT $4
    ) AS added
    WHERE change = ANY ($1) ORDER BY change, seq LIMIT $4
) AS added ON true ORDER BY change, seq;

-- Searching ----------------------------------------------------------------------------------------------------------

-- name: indexing_state
SELECT rules, change, swept, forgotten, coalesce((SELECT max(change) FROM changes), forgotten)
FROM indexing, store;

-- name: lock_indexing
SELECT 1 FROM indexing FOR UPDATE;

-- name: set_indexing_state
UPDATE indexing SET rules = $1, change = $2, swept = $3;

-- name: forget_words
WITH gone AS (DELETE FROM indexed) DELETE FROM words;

-- name: sessions_to_index
SELECT id, max(last) FROM (
    (SELECT id, next_seq - 1 AS last FROM sessions WHERE id > $1 ORDER BY id LIMIT $2)
    UNION ALL
    (SELECT id, 0 FROM indexed WHERE id > $1 ORDER BY id LIMIT $2)
) AS there GROUP BY id ORDER BY id LIMIT $2;

-- name: changes_to_index
SELECT change, id, coalesce(last, 0), rewound_to IS NOT NULL OR gone_user IS NOT NULL FROM changes
WHERE change > $1 AND change <= $2 ORDER BY change LIMIT $3;

-- name: forget_stale_words
WITH gone AS (
    DELETE FROM indexed WHERE id = ANY ($1)
    AND NOT EXISTS (SELECT FROM sessions WHERE sessions.id = indexed.id AND sessions.number = indexed.number)
)
DELETE FROM words WHERE id = ANY ($1) AND (
    NOT EXISTS (SELECT FROM sessions WHERE sessions.id = words.id AND sessions.number = words.number)
    OR seq > 0 AND NOT EXISTS (SELECT FROM records WHERE records.id = words.id AND records.seq = words.seq)
);

-- name: records_to_index
-- Session by session, in order: so it looks at no more records than it gives back.
SELECT id, number, seq, kind, body FROM (
    SELECT *, sum(length(body)) OVER (ORDER BY id, seq ROWS UNBOUNDED PRECEDING) - length(body) AS before FROM (
        SELECT asked.id, sessions.number, next.seq, next.kind, next.body
        FROM (
            SELECT id COLLATE "C" AS id, last FROM unnest($1::text[], $2::bigint[]) AS asked (id, last)
            WHERE id COLLATE "C" >= $5 ORDER BY id COLLATE "C"
        ) AS asked
        JOIN sessions ON sessions.id = asked.id
        LEFT JOIN indexed ON indexed.id = asked.id AND indexed.number = sessions.number
        CROSS JOIN LATERAL (
            SELECT seq, kind, body FROM records
            WHERE records.id = asked.id AND records.seq <= asked.last
                AND records.seq > greatest(indexed.seq, CASE asked.id WHEN $5 THEN $6::bigint ELSE 0 END)
            ORDER BY seq LIMIT $3
        ) AS next
        ORDER BY id, seq LIMIT $3
    ) AS first
) AS found WHERE before < $4 ORDER BY id, seq;

-- name: titles_to_index
SELECT sessions.id, sessions.number, sessions.title
FROM sessions LEFT JOIN indexed ON indexed.id = sessions.id AND indexed.number = sessions.number
WHERE sessions.id = ANY ($1) AND sessions.title IS DISTINCT FROM indexed.title;

-- name: add_words
INSERT INTO words (id, number, seq, lexemes, line)
SELECT id, number, seq, lexemes::tsvector, line
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[]) AS added (id, number, seq, lexemes, line)
ON CONFLICT (id, seq) DO UPDATE SET number = excluded.number, lexemes = excluded.lexemes, line = excluded.line;

-- name: forget_titles
DELETE FROM words WHERE id = ANY ($1) AND seq = 0;

-- name: set_indexed
INSERT INTO indexed (id, number, seq) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[])
ON CONFLICT (id) DO UPDATE SET number = excluded.number, seq = excluded.seq,
    title = CASE WHEN indexed.number = excluded.number THEN indexed.title END;

-- name: set_indexed_titles
INSERT INTO indexed (id, number, seq, title)
SELECT id, number, 0, title FROM unnest($1::text[], $2::bigint[], $3::bytea[]) AS titled (id, number, title)
ON CONFLICT (id) DO UPDATE SET number = excluded.number, title = excluded.title,
    seq = CASE WHEN indexed.number = excluded.number THEN indexed.seq ELSE 0 END;

-- name: search
-- In the index, or else in what comes along. A title is in the index until it is another one.
WITH matching AS (
    SELECT id, number, seq, lexemes FROM words
    WHERE $9 AND lexemes @@ $1::text::tsquery AND line IS NULL
    UNION ALL
    SELECT id, number, seq, lexemes FROM words
    WHERE $9 AND line IS NOT NULL AND (SELECT bool_and(strpos(line, wanted) > 0) FROM unnest($2::text[]) AS wanted)
    UNION ALL
    SELECT id, number, seq, lexemes::tsvector
    FROM unnest($10::text[], $11::bigint[], $12::bigint[], $13::text[], $14::text[])
        AS pending (id, number, seq, lexemes, line)
    WHERE line IS NULL AND lexemes::tsvector @@ $1::text::tsquery
        OR line IS NOT NULL AND (SELECT bool_and(strpos(line, wanted) > 0) FROM unnest($2::text[]) AS wanted)
), best AS (
    SELECT id, seq, ts_rank(lexemes, $1::text::tsquery, 1) AS score, user_id, title, opening
    FROM matching JOIN sessions USING (id, number)
    WHERE (
        CASE WHEN seq = 0
        THEN NOT $9 OR EXISTS (SELECT FROM indexed WHERE indexed.id = matching.id AND indexed.title = sessions.title)
        ELSE EXISTS (SELECT FROM records WHERE records.id = matching.id AND records.seq = matching.seq) END
    )
    AND ($3::text IS NULL OR user_id = $3)
    AND ($4::bytea IS NULL OR coalesce(project_id, project, projects) = $4)
    AND (
        $5::real IS NULL OR ts_rank(lexemes, $1::text::tsquery, 1) < $5
        OR ts_rank(lexemes, $1::text::tsquery, 1) = $5 AND (id, seq) > ($6::text, $7::bigint)
    )
    ORDER BY score DESC, id, seq LIMIT $8
)
SELECT id, seq, score, user_id, coalesce(title, opening), kind, CASE WHEN seq = 0 THEN title ELSE body END
FROM best LEFT JOIN records USING (id, seq) ORDER BY score DESC, id, seq;

-- Checking -----------------------------------------------------------------------------------------------------------

-- name: check_sessions
SELECT id, version, created, updated, age, age_rest, next_seq, users, agents, events, size,
    (SELECT string_agg(member, ',' ORDER BY place) FROM metadata WHERE metadata.id = sessions.id), layout,
    ARRAY[active_seed_id, active_persona_id, project_id, parent_session_id, title, project, projects, opening]
FROM sessions ORDER BY id;

-- name: check_records
-- Of some sessions, each looked up by itself, as in small_sessions.
SELECT all_of_it.*, id FROM unnest($1::text[]) AS looked_at (id), LATERAL (
    SELECT seq, kind, body FROM records WHERE records.id = looked_at.id OFFSET 0
) AS all_of_it
ORDER BY id, seq;

-- name: check_strays
SELECT 'records', id, count(*) FROM records WHERE NOT EXISTS (SELECT FROM sessions WHERE sessions.id = records.id)
GROUP BY id
UNION ALL
SELECT 'metadata', id, count(*) FROM metadata WHERE NOT EXISTS (SELECT FROM sessions WHERE sessions.id = metadata.id)
GROUP BY id;

-- name: check_documents
SELECT category, name, kind, body FROM documents ORDER BY category, name, kind;
