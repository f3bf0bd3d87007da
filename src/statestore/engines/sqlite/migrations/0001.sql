-- One row a session: what listings show, and where the next record goes.
CREATE TABLE sessions (
    number            INTEGER PRIMARY KEY AUTOINCREMENT, -- never given out twice
    id                TEXT    NOT NULL UNIQUE,
    user_id           TEXT    NOT NULL,
    version           TEXT    NOT NULL,
    created           TEXT    NOT NULL,
    updated           TEXT    NOT NULL,
    age               INTEGER NOT NULL, -- of `updated`: microseconds before 1970, so that the newest sorts first
    age_rest          INTEGER NOT NULL, -- and the nanoseconds beyond them, 0 to 999
    next_seq          INTEGER NOT NULL,
    users             INTEGER NOT NULL, -- how many records of each kind
    agents            INTEGER NOT NULL,
    events            INTEGER NOT NULL,
    alternates        INTEGER NOT NULL, -- 1 while they are a message, a response, a message, …, from 1 on without a gap
    size              INTEGER NOT NULL, -- bytes of records and metadata
    active_seed_id    TEXT,
    active_persona_id TEXT,
    project_id        TEXT,
    parent_session_id TEXT,
    title             TEXT, -- from metadata["title"]
    project           TEXT, -- from metadata["project_id"]
    projects          TEXT, -- from metadata["project_ids"]
    opening           TEXT  -- from the first message
) STRICT;

CREATE INDEX sessions_newest ON sessions (age, age_rest, id);
CREATE INDEX sessions_newest_of_user ON sessions (user_id, age, age_rest, id);
CREATE INDEX sessions_children ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;

-- What may be large and is not needed to append or to list.
CREATE TABLE extras (
    number   INTEGER PRIMARY KEY,
    metadata TEXT NOT NULL, -- a JSON object
    layout   BLOB           -- where the session's JSON is out of the ordinary
) STRICT;

-- One row a record. The sessions lie one after the other, each in the order of its numbers.
CREATE TABLE records (
    place INTEGER PRIMARY KEY, -- session number << 32 | sequence number
    kind  INTEGER NOT NULL,    -- 0 user, 1 agent, 2 event
    body  TEXT    NOT NULL     -- JSON, verbatim
) STRICT;

-- The idempotency keys, where there are any.
CREATE TABLE keys (
    number INTEGER NOT NULL,
    key    TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (number, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_by_seq ON keys (number, seq);

-- What happened to sessions, in order; the oldest rows are removed in time.
CREATE TABLE changes (
    change     INTEGER PRIMARY KEY,
    number     INTEGER NOT NULL,
    first      INTEGER, -- the records that were added
    last       INTEGER,
    rewound_to INTEGER, -- the last record that was left when later ones were removed
    is_header  INTEGER, -- 1 if the session was created, or a field or its metadata changed
    gone_id    TEXT,    -- of a session that was deleted
    gone_user  TEXT
) STRICT;

-- Which store this is, so that a cursor of another one, or of one that was restored since, is not taken for its own.
CREATE TABLE identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  TEXT NOT NULL
) STRICT;
INSERT INTO identity VALUES (1, lower(hex(randomblob(8))));

CREATE TABLE documents (
    category TEXT NOT NULL,
    name     TEXT NOT NULL,
    kind     TEXT NOT NULL,
    version  TEXT NOT NULL,
    body     BLOB NOT NULL,
    PRIMARY KEY (category, name, kind)
) STRICT;

-- The words of records and titles, by place; a title's has the sequence number 0. Filled when a search asks for it.
CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'ascii'); -- as engines/fulltext.py has it

-- How far each session is in the index of words, and the title that it has there.
CREATE TABLE indexed (
    number INTEGER PRIMARY KEY,
    seq    INTEGER NOT NULL,
    change INTEGER NOT NULL, -- the last change that was looked at
    title  TEXT
) STRICT;

-- How far the index of words is: the last change that it has seen, and, while it is made anew, the last session.
CREATE TABLE indexing (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    rules  INTEGER NOT NULL, -- by which text was cut into words
    change INTEGER NOT NULL,
    swept  INTEGER
) STRICT;
INSERT INTO indexing VALUES (1, 0, 0, NULL);
