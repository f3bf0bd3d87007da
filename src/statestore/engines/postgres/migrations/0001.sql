-- Which store this is, and which release's schema it has.
CREATE TABLE store (
    one       smallint PRIMARY KEY CHECK (one = 1),
    version   integer  NOT NULL,
    identity  text     NOT NULL, -- so that a watcher's cursor of another store is not taken for its own
    forgotten bigint   NOT NULL  -- the last change that was removed from the table of changes
);
INSERT INTO store VALUES (1, 0, replace(gen_random_uuid()::text, '-', ''), 0);

CREATE SEQUENCE session_numbers;
CREATE SEQUENCE change_numbers;

-- One row a session: what listings show, and where the next record goes. Texts that may hold a NUL are bytes.
CREATE TABLE sessions (
    id                text COLLATE "C" PRIMARY KEY,
    number            bigint   NOT NULL, -- of all sessions that ever had this id, which one it is
    user_id           text COLLATE "C" NOT NULL,
    version           text     NOT NULL,
    created           text     NOT NULL,
    updated           text     NOT NULL,
    age               bigint   NOT NULL, -- of `updated`: microseconds before 1970, so that the newest sorts first
    age_rest          smallint NOT NULL, -- and the nanoseconds beyond them, 0 to 999
    next_seq          bigint   NOT NULL,
    users             bigint   NOT NULL, -- how many records of each kind
    agents            bigint   NOT NULL,
    events            bigint   NOT NULL,
    size              bigint   NOT NULL, -- bytes of records and metadata
    active_seed_id    bytea,
    active_persona_id bytea,
    project_id        bytea,
    parent_session_id bytea,
    title             bytea, -- from metadata["title"]
    project           bytea, -- from metadata["project_id"]
    projects          bytea, -- from metadata["project_ids"]
    opening           bytea, -- from the first message
    layout            bytea  -- where the session's JSON is out of the ordinary
);

CREATE INDEX sessions_newest ON sessions (age, age_rest, id);
CREATE INDEX sessions_newest_of_user ON sessions (user_id, age, age_rest, id);
CREATE INDEX sessions_children ON sessions (sha256(parent_session_id)) -- itself it may be too long for an index
    WHERE parent_session_id IS NOT NULL;
CREATE INDEX sessions_newest_of_project ON sessions (sha256(coalesce(project_id, project, projects)), age, age_rest, id)
    WHERE coalesce(project_id, project, projects) IS NOT NULL;

-- One row a metadata key: its JSON text and its value's, as they stand in the object.
CREATE TABLE metadata (
    id     text COLLATE "C" NOT NULL,
    key    text COLLATE "C" NOT NULL,
    place  bigint NOT NULL, -- keys keep the order in which they were first set
    member bytea  NOT NULL,
    PRIMARY KEY (id, key)
);

-- One row a record.
CREATE TABLE records (
    id   text COLLATE "C" NOT NULL,
    seq  bigint   NOT NULL,
    kind smallint NOT NULL, -- 0 user, 1 agent, 2 event
    body bytea    NOT NULL, -- JSON, verbatim
    key  text COLLATE "C",  -- the idempotency key, if it came with one
    PRIMARY KEY (id, seq)
);
CREATE UNIQUE INDEX records_keys ON records (id, key) WHERE key IS NOT NULL;

CREATE TABLE documents (
    category text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    version  text  NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (category, name, kind)
);

-- What happened to sessions; the oldest rows are removed in time. The numbers of one session's changes rise in the
-- order in which they happened, since they are drawn while its row is locked. All of them do not: see note_changes.
CREATE TABLE changes (
    change     bigint PRIMARY KEY,
    id         text COLLATE "C" NOT NULL,
    number     bigint NOT NULL,
    first      bigint,  -- the records that were added
    last       bigint,
    rewound_to bigint,  -- the last record that was left when later ones were removed
    is_header  boolean NOT NULL, -- whether the session was created, or a field or its metadata changed
    gone_user  text COLLATE "C"  -- whose session it was, if it was deleted
);

-- What became of each group of batches, for whoever lost the connection before hearing of it. Kept for an hour.
CREATE TABLE tokens (
    token    uuid PRIMARY KEY,
    made     timestamptz NOT NULL DEFAULT now(),
    outcomes text NOT NULL
);
CREATE INDEX tokens_oldest ON tokens (made);

-- The words of records and, with the sequence number 0, of titles. Filled when a search asks for it.
CREATE TABLE words (
    id      text COLLATE "C" NOT NULL,
    seq     bigint   NOT NULL,
    number  bigint   NOT NULL,
    lexemes tsvector NOT NULL,
    line    text,    -- all tokens, of a text that is too long for `lexemes` to tell all about it
    PRIMARY KEY (id, seq)
);
CREATE INDEX words_lexemes ON words USING gin (lexemes);
CREATE INDEX words_long ON words (id, seq) WHERE line IS NOT NULL;

-- How far each session is in the index of words, and the title that it has there.
CREATE TABLE indexed (
    id     text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,
    seq    bigint NOT NULL,
    title  bytea
);

-- How far the index of words is: the last change that it has seen, and, while it is made anew, the last session.
CREATE TABLE indexing (
    one    smallint PRIMARY KEY CHECK (one = 1),
    rules  integer  NOT NULL, -- by which text was cut into words
    change bigint   NOT NULL,
    swept  text COLLATE "C"
);
INSERT INTO indexing VALUES (1, 0, 0, NULL);

-- Until when somebody watches: as long as writers tell watchers that something happened.
CREATE TABLE watched (
    one   smallint PRIMARY KEY CHECK (one = 1),
    until timestamptz NOT NULL
);
INSERT INTO watched VALUES (1, '-infinity');

-- Write down what happened, while what it happened to is locked.
-- Numbers are drawn first, and then a transaction within the transaction begins, to write the rows. So its id, which is
-- the rows' xmin, is above that of every transaction that may have drawn a lower number: once all transactions below it
-- have ended, no lower number can turn up any more.
CREATE FUNCTION note_changes(
    p_id text[], p_number bigint[], p_first bigint[], p_last bigint[], p_rewound_to bigint[], p_is_header boolean[],
    p_gone_user text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_changes bigint[] := ARRAY(SELECT nextval('change_numbers') FROM unnest(p_id));
BEGIN
    BEGIN
        INSERT INTO changes (change, id, number, first, last, rewound_to, is_header, gone_user)
        SELECT * FROM unnest(v_changes, p_id, p_number, p_first, p_last, p_rewound_to, p_is_header, p_gone_user);
    EXCEPTION
        WHEN assert_failure THEN RAISE; -- a block with a handler is a transaction of its own
    END;
    IF (SELECT until > now() FROM watched) THEN
        PERFORM pg_notify('statestore_' || identity, '') FROM store;
    END IF;
END $$;

-- The last change below which none can turn up any more: below a row whose own transaction is below all that are under
-- way (see note_changes), and from there on as long as no number is missing. STABLE: it sees what the statement sees
-- that asks.
CREATE FUNCTION horizon() RETURNS bigint STABLE LANGUAGE sql AS $$
    WITH settled AS (
        SELECT coalesce((
            SELECT change FROM changes
            WHERE age(xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid)
            ORDER BY change DESC LIMIT 1
        ), forgotten) AS change FROM store
    ), later AS (
        SELECT change, row_number() OVER (ORDER BY change) AS place
        FROM changes WHERE change > (SELECT change FROM settled)
    )
    SELECT coalesce((SELECT max(later.change) FROM later WHERE later.change = settled.change + place), settled.change)
    FROM settled
$$;

-- Refuse to go on after a moment: whoever asked has given up by then, or soon will, and must not find later that
-- something happened after all. It counts whenever the statement gets here, be it after an hour in a socket.
CREATE FUNCTION check_in_time(p_deadline double precision) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF extract(epoch FROM clock_timestamp()) >= p_deadline THEN
        RAISE EXCEPTION 'it is too late: nothing was written' USING ERRCODE = 'LATE0';
    END IF;
END $$;

-- The same, and wait for locks no longer than until then, nor longer than `statestore.longest_wait` milliseconds if that
-- is set.
CREATE FUNCTION hurry(p_deadline double precision) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_longest_wait integer := coalesce(nullif(current_setting('statestore.longest_wait', true), ''), '2000000000');
BEGIN
    PERFORM check_in_time(p_deadline);
    IF p_deadline IS NOT NULL THEN
        PERFORM set_config('lock_timeout', least(v_longest_wait, greatest(
            ceil((p_deadline - extract(epoch FROM clock_timestamp())) * 1000), 1))::integer::text, true);
    END IF;
END $$;

-- What became of an earlier attempt under this token, if there was one. Waits for it if it is still under way.
-- Its row is written again: so our own commit, too, waits for standbys that have to hear of it first.
CREATE FUNCTION told_before(p_token uuid, p_is_retry boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_told text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_token::text, 0));
    IF p_is_retry THEN
        UPDATE tokens SET made = made WHERE token = p_token RETURNING outcomes INTO v_told;
    END IF;
    RETURN v_told;
END $$;

-- Appending to sessions that exist, each named once: what is done most, for all callers that wait, in a few statements.
-- Gives back, as JSON, a list for each session: the reason why nothing was done, the version before, the first number.
CREATE FUNCTION append_to_sessions(
    p_token uuid, p_is_retry boolean, -- under the token of an attempt whose end is not known
    p_deadline double precision, -- in seconds since 1970, by this server's clock; NULL if there is none
    p_id text[], p_version text[], p_updated text[], p_age bigint[], p_age_rest smallint[],
    p_owner text[], p_created text[], p_at_version text[], -- what it requires
    p_users bigint[], p_agents bigint[], p_events bigint[], p_bytes bigint[],
    p_opening bytea[],
    r_session bigint[], r_place bigint[], r_kind smallint[], r_body bytea[] -- whose record, from 1 on, and its place
) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_held text[];
    v_told text;
    v_id text[];
    v_number bigint[];
    v_first bigint[];
    v_last bigint[];
BEGIN
    v_told := told_before(p_token, p_is_retry);
    IF v_told IS NOT NULL THEN
        RETURN v_told;
    END IF;
    PERFORM hurry(p_deadline);
    v_held := ARRAY(SELECT id FROM sessions WHERE id = ANY (p_id) ORDER BY id FOR UPDATE);
    WITH asked AS (
        SELECT * FROM unnest(
            p_id, p_version, p_updated, p_age, p_age_rest, p_owner, p_created, p_at_version,
            p_users, p_agents, p_events, p_bytes, p_opening
        ) WITH ORDINALITY AS asked (
            id, version, updated, age, age_rest, owner, created, at_version,
            users, agents, events, bytes, opening, place
        )
    ), judged AS (
        SELECT asked.*, held.number, held.version AS before, held.next_seq AS first,
            (asked.age, asked.age_rest) < (held.age, held.age_rest) AS is_newer,
            CASE
                WHEN held.id IS NULL THEN 'missing'
                WHEN asked.owner <> held.user_id THEN 'owner'
                WHEN asked.created <> held.created THEN 'missing'
                WHEN asked.at_version <> held.version THEN 'version'
            END AS reason
        FROM asked LEFT JOIN sessions AS held ON held.id = asked.id AND held.id = ANY (v_held)
    ), stored AS (
        INSERT INTO records (id, seq, kind, body)
        SELECT judged.id, judged.first + record.place, record.kind, record.body
        FROM unnest(r_session, r_place, r_kind, r_body) AS record (session, place, kind, body)
        JOIN judged ON judged.place = record.session
        WHERE judged.reason IS NULL
    ), moved AS (
        UPDATE sessions SET
            version = judged.version,
            updated = CASE WHEN is_newer THEN judged.updated ELSE sessions.updated END,
            age = CASE WHEN is_newer THEN judged.age ELSE sessions.age END,
            age_rest = CASE WHEN is_newer THEN judged.age_rest ELSE sessions.age_rest END,
            next_seq = next_seq + judged.users + judged.agents + judged.events,
            users = sessions.users + judged.users,
            agents = sessions.agents + judged.agents,
            events = sessions.events + judged.events,
            size = size + bytes,
            opening = coalesce(sessions.opening, judged.opening)
        FROM judged WHERE sessions.id = judged.id AND judged.reason IS NULL
    )
    SELECT json_agg(json_build_array(reason, before, first) ORDER BY place)::text,
        array_agg(id ORDER BY place) FILTER (WHERE reason IS NULL),
        array_agg(number ORDER BY place) FILTER (WHERE reason IS NULL),
        array_agg(CASE WHEN count > 0 THEN first END ORDER BY place) FILTER (WHERE reason IS NULL),
        array_agg(CASE WHEN count > 0 THEN first + count - 1 END ORDER BY place) FILTER (WHERE reason IS NULL)
    INTO v_told, v_id, v_number, v_first, v_last
    FROM (SELECT *, users + agents + events AS count FROM judged) AS counted;
    IF v_id IS NOT NULL THEN
        PERFORM note_changes(v_id, v_number, v_first, v_last, NULL, array_fill(false, ARRAY[cardinality(v_id)]), NULL);
    END IF;
    INSERT INTO tokens (token, outcomes) VALUES (p_token, v_told);
    PERFORM check_in_time(p_deadline);
    RETURN v_told;
END $$;

-- Why a change cannot be made, if it cannot. What is there is locked.
CREATE FUNCTION objection_to(
    p_what smallint, p_id text, p_name text, p_kind text, p_absent boolean, p_present boolean, p_at_version text,
    p_owner text, p_created text, p_creates boolean
) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_is_session boolean := p_what IN (0, 1);
    v_there record;
BEGIN
    IF v_is_session THEN
        SELECT version, user_id, created INTO v_there FROM sessions WHERE id = p_id FOR UPDATE;
    ELSE
        SELECT version, NULL::text AS user_id, NULL::text AS created INTO v_there FROM documents
        WHERE category = p_id AND name = p_name AND kind = p_kind FOR UPDATE;
    END IF;
    IF NOT FOUND THEN
        RETURN CASE WHEN p_present OR p_at_version IS NOT NULL OR p_what = 0 AND NOT p_creates THEN 'missing' END;
    END IF;
    RETURN CASE
        WHEN p_owner IS NOT NULL AND v_there.user_id IS DISTINCT FROM p_owner THEN 'owner'
        WHEN p_created IS NOT NULL AND v_there.created IS DISTINCT FROM p_created THEN 'missing'
        WHEN p_absent THEN 'exists'
        WHEN p_at_version <> v_there.version THEN 'version'
    END;
END $$;

-- Refuse a number that was given out before.
CREATE FUNCTION check_free(p_id text, p_seq bigint, p_free bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_seq < p_free THEN
        RAISE EXCEPTION 'session %: a record asks for number %, and the first free one is %', p_id, p_seq, p_free
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

-- Any changes, batch by batch: each batch wholly or not at all, each seeing what those before it made.
-- Gives back, as JSON, a list for each change: whether its batch was made, the reason against it, the version before,
-- the first number given out, or all of them where they are not simply one after the other, and how many things went.
CREATE FUNCTION make_batches(
    p_token uuid, p_is_retry boolean, p_deadline double precision,
    p_locks integer[], -- what to lock by its name, since it may not be there yet, in rising order
    p_batch integer[], p_batch_size integer[],
    p_what smallint[], -- 0 change a session, 1 delete it, 2 put a document, 3 delete it, 4 delete a category
    p_id text[], p_name text[], p_kind text[], -- a session's id, or a document's category, name and kind
    p_content bytea[], -- a document's body, or a new session's layout
    p_version text[], -- the new one
    p_absent boolean[], p_present boolean[], p_at_version text[], p_owner text[], p_made text[], -- what it requires
    p_updated text[], p_age bigint[], p_age_rest smallint[],
    p_user text[], p_created text[], p_next_seq bigint[], -- of a session that may be created
    p_kept bigint[], -- the number after which records are dropped
    p_numbering smallint[], -- 0 one after the other, 1 as given, 2 one by one, for records with keys
    p_first integer[], p_last integer[], -- which of the records
    p_users bigint[], p_agents bigint[], p_events bigint[], p_bytes bigint[], p_opening bytea[],
    p_is_header boolean[],
    p_first_field integer[], p_last_field integer[], p_first_member integer[], p_last_member integer[],
    r_kind smallint[], r_body bytea[], r_key text[], r_seq bigint[], r_opening bytea[],
    f_name text[], f_value bytea[], -- fields to set
    m_key text[], m_member bytea[] -- metadata to set, or to unset
) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    c record; -- the change
    s sessions%ROWTYPE; -- its session
    r record; -- one of its records, fields or members
    v_told text[] := '{}';
    v_batch integer := -1;
    v_start bigint; -- the index of the batch's first change
    v_is_made boolean;
    v_reasons text[];
    v_before text;
    v_is_new boolean;
    v_first bigint;
    v_last bigint;
    v_seq bigint;
    v_free bigint; -- the first number that a record may ask for
    v_seqs bigint[];
    v_gone bigint;
    v_unset text[];
    v_result text;
    n_id text[] := '{}'; -- what is to be noted of sessions that changed
    n_number bigint[] := '{}';
    n_first bigint[] := '{}';
    n_last bigint[] := '{}';
    n_rewound_to bigint[] := '{}';
    n_is_header boolean[] := '{}';
    n_gone_user text[] := '{}';
BEGIN
    v_result := told_before(p_token, p_is_retry);
    IF v_result IS NOT NULL THEN
        RETURN v_result;
    END IF;
    PERFORM hurry(p_deadline);

    -- Everybody locks names first, then sessions, then documents, each in one order: so nobody waits in a circle.
    PERFORM pg_advisory_xact_lock('store'::regclass::oid::integer, name) FROM unnest(p_locks) AS name;
    IF cardinality(p_what) > 1 THEN
        PERFORM 1 FROM sessions WHERE id = ANY (p_id) ORDER BY id FOR UPDATE;
        FOR r IN -- one by one, by the primary key: a condition on all of them at once would look at the whole table
            SELECT asked.id AS category, asked.name, asked.kind
            FROM unnest(p_what, p_id, p_name, p_kind) AS asked (what, id, name, kind) WHERE asked.what IN (2, 3)
            UNION
            SELECT there.category, there.name, there.kind
            FROM unnest(p_what, p_id) AS asked (what, id) JOIN documents AS there ON there.category = asked.id
            WHERE asked.what = 4 AND 4 = ANY (p_what) -- the latter is known before it looks at any document
            ORDER BY category, name, kind
        LOOP
            PERFORM 1 FROM documents WHERE category = r.category AND name = r.name AND kind = r.kind FOR UPDATE;
        END LOOP;
    END IF;

    -- Elements are taken from the arrays one by one, which takes no time; a slice would copy a whole array each time.
    FOR c IN
        SELECT * FROM unnest(
            p_batch, p_batch_size, p_what, p_id, p_name, p_kind, p_content, p_version,
            p_absent, p_present, p_at_version, p_owner, p_made, p_updated, p_age, p_age_rest,
            p_user, p_created, p_next_seq, p_kept, p_numbering, p_first, p_last,
            p_users, p_agents, p_events, p_bytes, p_opening, p_is_header,
            p_first_field, p_last_field, p_first_member, p_last_member
        ) WITH ORDINALITY AS c (
            batch, batch_size, what, id, name, kind, content, version,
            absent, present, at_version, owner, made, updated, age, age_rest,
            "user", created, next_seq, kept, numbering, first, last,
            users, agents, events, bytes, opening, is_header,
            first_field, last_field, first_member, last_member, index
        )
    LOOP
        IF c.batch <> v_batch THEN
            v_batch := c.batch;
            v_start := c.index;
            IF c.batch_size = 1 THEN
                v_reasons := ARRAY[objection_to(c.what, c.id, c.name, c.kind, c.absent, c.present, c.at_version,
                    c.owner, c.made, c."user" IS NOT NULL)];
            ELSE
                v_reasons := ARRAY(
                    SELECT objection_to(p_what[i], p_id[i], p_name[i], p_kind[i], p_absent[i], p_present[i],
                        p_at_version[i], p_owner[i], p_made[i], p_user[i] IS NOT NULL)
                    FROM generate_series(c.index::integer, c.index::integer + c.batch_size - 1) AS i
                );
            END IF;
            v_is_made := array_remove(v_reasons, NULL) = '{}';
        END IF;
        IF NOT v_is_made THEN
            v_told := v_told || json_build_array(false, v_reasons[c.index - v_start + 1])::text;
            CONTINUE;
        END IF;

        v_before := NULL;
        v_first := NULL;
        v_seqs := NULL;
        v_gone := 0;
        IF c.what = 0 THEN
            SELECT * INTO s FROM sessions WHERE id = c.id FOR UPDATE;
            v_is_new := NOT FOUND;
            v_before := s.version;
            v_free := CASE WHEN v_is_new THEN 1 ELSE s.next_seq END;
            v_last := NULL;
            IF v_is_new THEN
                s.id := c.id;
                s.number := nextval('session_numbers');
                s.user_id := c."user";
                s.created := c.created;
                s.updated := c.updated;
                s.age := c.age;
                s.age_rest := c.age_rest;
                s.next_seq := c.next_seq;
                s.users := 0;
                s.agents := 0;
                s.events := 0;
                s.size := 2;
                s.layout := c.content;
            END IF;

            IF c.kept IS NOT NULL THEN
                FOR r IN
                    WITH gone AS (DELETE FROM records WHERE id = c.id AND seq > c.kept RETURNING kind, length(body))
                    SELECT kind, count(*) AS count, sum(length) AS size FROM gone GROUP BY kind
                LOOP
                    s.users := s.users - CASE WHEN r.kind = 0 THEN r.count ELSE 0 END;
                    s.agents := s.agents - CASE WHEN r.kind = 1 THEN r.count ELSE 0 END;
                    s.events := s.events - CASE WHEN r.kind = 2 THEN r.count ELSE 0 END;
                    s.size := s.size - r.size;
                END LOOP;
            END IF;

            IF c.first > c.last THEN
                NULL; -- no records
            ELSIF c.numbering = 2 THEN
                v_seqs := '{}';
                FOR i IN c.first .. c.last LOOP -- not over a query, which would be given a copy of each array
                    v_seq := NULL;
                    IF r_key[i] IS NOT NULL THEN
                        SELECT seq INTO v_seq FROM records WHERE id = c.id AND key = r_key[i];
                    END IF;
                    IF v_seq IS NULL THEN
                        v_seq := coalesce(r_seq[i], s.next_seq);
                        PERFORM check_free(c.id, v_seq, v_free);
                        v_free := v_seq + 1;
                        INSERT INTO records (id, seq, kind, body, key)
                        VALUES (c.id, v_seq, r_kind[i], r_body[i], r_key[i]);
                        v_first := coalesce(v_first, v_seq);
                        v_last := v_seq;
                        s.next_seq := greatest(s.next_seq, v_seq + 1);
                        s.users := s.users + CASE WHEN r_kind[i] = 0 THEN 1 ELSE 0 END;
                        s.agents := s.agents + CASE WHEN r_kind[i] = 1 THEN 1 ELSE 0 END;
                        s.events := s.events + CASE WHEN r_kind[i] = 2 THEN 1 ELSE 0 END;
                        s.size := s.size + length(r_body[i]);
                        s.opening := coalesce(s.opening, r_opening[i]);
                    END IF;
                    v_seqs := v_seqs || v_seq;
                END LOOP;
            ELSE
                PERFORM check_free(c.id, r_seq[c.first], v_free);
                INSERT INTO records (id, seq, kind, body)
                SELECT c.id, coalesce(r_seq[i], s.next_seq + i - c.first), r_kind[i], r_body[i]
                FROM generate_series(c.first, c.last) AS i;
                v_first := coalesce(r_seq[c.first], s.next_seq);
                v_last := coalesce(r_seq[c.last], s.next_seq + c.last - c.first);
                s.next_seq := greatest(s.next_seq, v_last + 1);
                s.users := s.users + c.users;
                s.agents := s.agents + c.agents;
                s.events := s.events + c.events;
                s.size := s.size + c.bytes;
                s.opening := coalesce(s.opening, c.opening);
            END IF;

            IF c.is_header THEN
                FOR r IN
                    SELECT f_name[i] AS name, f_value[i] AS value
                    FROM generate_series(c.first_field, c.last_field) AS i
                LOOP
                    CASE r.name
                        WHEN 'active_seed_id' THEN s.active_seed_id := r.value;
                        WHEN 'active_persona_id' THEN s.active_persona_id := r.value;
                        WHEN 'project_id' THEN s.project_id := r.value;
                        WHEN 'parent_session_id' THEN s.parent_session_id := r.value;
                        WHEN 'title' THEN s.title := r.value;
                        WHEN 'project' THEN s.project := r.value;
                        WHEN 'projects' THEN s.projects := r.value;
                        WHEN 'opening' THEN s.opening := r.value;
                    END CASE;
                END LOOP;
                IF c.first_member <= c.last_member THEN
                    SELECT s.size - coalesce(sum(length(member) + 1), 1) INTO s.size FROM metadata WHERE id = c.id;
                    v_unset := ARRAY(
                        SELECT m_key[i] FROM generate_series(c.first_member, c.last_member) AS i
                        WHERE m_member[i] IS NULL
                    );
                    IF v_unset <> '{}' THEN
                        DELETE FROM metadata WHERE id = c.id AND key = ANY (v_unset);
                    END IF;
                    INSERT INTO metadata AS old (id, key, place, member)
                    SELECT c.id, m_key[i], i + coalesce((SELECT max(place) FROM metadata WHERE id = c.id), 0),
                        m_member[i]
                    FROM generate_series(c.first_member, c.last_member) AS i WHERE m_member[i] IS NOT NULL
                    ON CONFLICT (id, key) DO UPDATE SET member = excluded.member;
                    SELECT s.size + coalesce(sum(length(member) + 1), 1) INTO s.size FROM metadata WHERE id = c.id;
                END IF;
            END IF;

            s.version := c.version;
            IF (c.age, c.age_rest) < (s.age, s.age_rest) THEN
                s.updated := c.updated;
                s.age := c.age;
                s.age_rest := c.age_rest;
            END IF;
            IF v_is_new THEN
                INSERT INTO sessions SELECT s.*;
            ELSE
                UPDATE sessions SET version = s.version, updated = s.updated, age = s.age, age_rest = s.age_rest,
                    next_seq = s.next_seq, users = s.users, agents = s.agents, events = s.events,
                    size = s.size, active_seed_id = s.active_seed_id,
                    active_persona_id = s.active_persona_id, project_id = s.project_id,
                    parent_session_id = s.parent_session_id, title = s.title, project = s.project,
                    projects = s.projects, opening = s.opening
                WHERE id = c.id;
            END IF;
            n_id := n_id || s.id;
            n_number := n_number || s.number;
            n_first := n_first || v_first;
            n_last := n_last || v_last;
            n_rewound_to := n_rewound_to || CASE WHEN c.kept IS NOT NULL THEN greatest(c.kept, 0) END;
            n_is_header := n_is_header || (v_is_new OR c.is_header);
            n_gone_user := n_gone_user || NULL::text;

        ELSIF c.what = 1 THEN
            DELETE FROM sessions WHERE id = c.id RETURNING * INTO s;
            IF FOUND THEN
                v_before := s.version;
                v_gone := 1;
                DELETE FROM records WHERE id = c.id;
                DELETE FROM metadata WHERE id = c.id;
                n_id := n_id || s.id;
                n_number := n_number || s.number;
                n_first := n_first || NULL::bigint;
                n_last := n_last || NULL::bigint;
                n_rewound_to := n_rewound_to || NULL::bigint;
                n_is_header := n_is_header || false;
                n_gone_user := n_gone_user || s.user_id;
            END IF;

        ELSIF c.what = 2 THEN
            SELECT version INTO v_before FROM documents
            WHERE category = c.id AND name = c.name AND kind = c.kind FOR UPDATE;
            INSERT INTO documents (category, name, kind, version, body)
            VALUES (c.id, c.name, c.kind, c.version, c.content)
            ON CONFLICT (category, name, kind) DO UPDATE SET version = excluded.version, body = excluded.body;

        ELSIF c.what = 3 THEN
            DELETE FROM documents WHERE category = c.id AND name = c.name AND kind = c.kind
            RETURNING version INTO v_before;
            v_gone := CASE WHEN FOUND THEN 1 ELSE 0 END;

        ELSE
            DELETE FROM documents WHERE category = c.id;
            GET DIAGNOSTICS v_gone = ROW_COUNT;
        END IF;
        v_told := v_told || json_build_array(true, NULL, v_before, v_first, v_seqs, v_gone)::text;
    END LOOP;

    IF n_id <> '{}' THEN
        PERFORM note_changes(n_id, n_number, n_first, n_last, n_rewound_to, n_is_header, n_gone_user);
    END IF;
    v_result := '[' || array_to_string(v_told, ',') || ']';
    INSERT INTO tokens (token, outcomes) VALUES (p_token, v_result);
    PERFORM check_in_time(p_deadline);
    RETURN v_result;
END $$;

-- Forget what nobody needs any more: outcomes after an hour, and all but the last changes. But none is forgotten below
-- which one may still turn up (see horizon): whoever watches or indexes would never hear of that one.
CREATE FUNCTION tidy_up(p_changes_kept bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_last bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock('tokens'::regclass::oid::bigint) THEN
        RETURN; -- somebody else is at it
    END IF;
    DELETE FROM tokens WHERE made < now() - interval '1 hour';
    v_last := least((SELECT max(change) FROM changes) - p_changes_kept, horizon());
    IF v_last > (SELECT forgotten FROM store) THEN
        DELETE FROM changes WHERE change <= v_last;
        UPDATE store SET forgotten = v_last;
    END IF;
END $$;
