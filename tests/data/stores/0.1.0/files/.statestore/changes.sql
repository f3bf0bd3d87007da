PRAGMA application_id=0;
PRAGMA user_version=1;
CREATE TABLE log (
        identity TEXT    NOT NULL, -- of this file: a cursor of another one means nothing here
        rules    INTEGER NOT NULL  -- by which text was cut into words
    ) STRICT;
INSERT INTO log (identity, rules) VALUES ('794dd823f2f00485', 1);
CREATE TABLE sessions (
        number        INTEGER PRIMARY KEY AUTOINCREMENT, -- never given out twice
        id            TEXT    NOT NULL UNIQUE,
        entry         TEXT    NOT NULL, -- the file as it was seen, as JSON
        version       TEXT    NOT NULL, -- empty if the file cannot be read any more
        user_id       TEXT    NOT NULL,
        created       TEXT    NOT NULL,
        project       TEXT,
        title         TEXT,             -- as listings show it
        given_title   TEXT,             -- as the metadata have it, which is searched
        header        INTEGER NOT NULL, -- a checksum of fields and metadata
        indexed_seq   INTEGER NOT NULL DEFAULT 0, -- there are words of records up to this one
        kept_seq      INTEGER NOT NULL DEFAULT 0, -- up to this one they are the right ones
        indexed_title TEXT,
        is_indexed    INTEGER NOT NULL DEFAULT 0
    ) STRICT;
INSERT INTO sessions (number, id, entry, version, user_id, created, project, title, given_title, header, indexed_seq, kept_seq, indexed_title, is_indexed) VALUES (1, '55555555-5555-4555-8555-555555555555', '["55555555-5555-4555-8555-555555555555",1223,1769861040000000000,2188914,false,0,null]', '4c7-188fcf3d1f00e000-216672-88319062', 'user-newer', '2026-06-01T09:59:59Z', 'project-9', 'A newer session', 'A newer session', 2596627000, 2, 2, 'A newer session', 1);
INSERT INTO sessions (number, id, entry, version, user_id, created, project, title, given_title, header, indexed_seq, kept_seq, indexed_title, is_indexed) VALUES (2, 'gaps', '["gaps",1228,1769861040000000001,2187551,false,0,null]', '4cc-188fcf3d1f00e001-21611f-e455b447', 'bob', '2026-01-31T12:03:00Z', NULL, 'turn 1', NULL, 3806298513, 8, 8, NULL, 1);
INSERT INTO sessions (number, id, entry, version, user_id, created, project, title, given_title, header, indexed_seq, kept_seq, indexed_title, is_indexed) VALUES (3, '22222222-2222-4222-8222-222222222222', '["22222222-2222-4222-8222-222222222222",1821,1769861040000000000,2188790,false,0,null]', '71d-188fcf3d1f00e000-2165f6-7ec36fb0', 'ユーザー-1', '2023-11-14T22:13:21.123Z', 'project-7', 'Hello', NULL, 355198055, 7, 7, NULL, 1);
INSERT INTO sessions (number, id, entry, version, user_id, created, project, title, given_title, header, indexed_seq, kept_seq, indexed_title, is_indexed) VALUES (4, 'trip', '["trip",1972,1769860800000000000,2188483,true,0,null]', '7b4-188fcf053de38000-2164c3-baa1c05d', 'alice', '2026-01-31T12:00:00Z', 'project-7', 'A day on the island', 'A day on the island', 626629825, 5, 5, 'A day on the island', 1);
INSERT INTO sessions (number, id, entry, version, user_id, created, project, title, given_title, header, indexed_seq, kept_seq, indexed_title, is_indexed) VALUES (5, 'fork', '["fork",1689,1769860860000000000,2188498,true,0,null]', '699-188fcf13362ad800-2164d2-0cf9e8ce', 'alice', '2026-01-31T12:01:00Z', 'project-7', 'A day on the island', 'A day on the island', 3069481183, 3, 3, 'A day on the island', 1);
INSERT INTO sessions (number, id, entry, version, user_id, created, project, title, given_title, header, indexed_seq, kept_seq, indexed_title, is_indexed) VALUES (6, 'empty', '["empty",185,1769860920000000000,2188531,true,0,null]', 'b9-188fcf212e723000-2164f3-6c8ca186', 'bob', '2026-01-31T12:02:00Z', NULL, NULL, NULL, 3835712879, 0, 0, NULL, 1);
CREATE INDEX sessions_to_index ON sessions (number) WHERE NOT is_indexed;
CREATE TABLE marks (number INTEGER PRIMARY KEY, marks BLOB NOT NULL) STRICT;
INSERT INTO marks (number, marks) VALUES (1, X'10D72A343C405415');
INSERT INTO marks (number, marks) VALUES (2, X'B08FD1E106A964AD94B4F79652FC1CBD586ABFD2');
INSERT INTO marks (number, marks) VALUES (3, X'4D9D8533FE9011B48548D501D8DBD05BA3A977A6EA2344A419C092B9');
INSERT INTO marks (number, marks) VALUES (4, X'516180FF3DD56124C74FC7D8DEEE3A5914C5C0C3');
INSERT INTO marks (number, marks) VALUES (5, X'516180FF3DD56124C74FC7D8');
INSERT INTO marks (number, marks) VALUES (6, X'');
CREATE TABLE leftovers (number INTEGER PRIMARY KEY) STRICT;
INSERT INTO leftovers (number) VALUES (7);
INSERT INTO leftovers (number) VALUES (8);
INSERT INTO leftovers (number) VALUES (9);
CREATE TABLE changes (
        change     INTEGER PRIMARY KEY AUTOINCREMENT,
        number     INTEGER NOT NULL,
        first      INTEGER, -- the records that were added
        last       INTEGER,
        rewound_to INTEGER, -- the last record that was left when later ones were removed or rewritten
        is_header  INTEGER, -- 1 if the session was created, or a field or its metadata changed
        gone_id    TEXT,    -- of a session that was deleted
        gone_user  TEXT
    ) STRICT;
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (1, 1, 1, 2, NULL, 1, NULL, NULL);
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (10, 8, NULL, NULL, NULL, NULL, 'alice''s trash', 'alice');
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (11, 9, 1, 2, NULL, 1, NULL, NULL);
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (12, 9, NULL, NULL, NULL, NULL, 'bob''s trash', 'bob');
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (2, 2, 1, 8, NULL, 1, NULL, NULL);
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (3, 3, 1, 7, NULL, 1, NULL, NULL);
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (4, 4, 1, 5, NULL, 1, NULL, NULL);
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (5, 5, 1, 3, NULL, 1, NULL, NULL);
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (6, 6, NULL, NULL, NULL, 1, NULL, NULL);
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (7, 7, NULL, NULL, NULL, 1, NULL, NULL);
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (8, 7, NULL, NULL, NULL, NULL, 'deleted', 'bob');
INSERT INTO changes (change, number, first, last, rewound_to, is_header, gone_id, gone_user) VALUES (9, 8, 1, 2, NULL, 1, NULL, NULL);
CREATE INDEX rewinds ON changes (number, change) WHERE rewound_to IS NOT NULL;
CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'ascii');
INSERT INTO words (rowid, text) VALUES (12884901889, 'Hello');
INSERT INTO words (rowid, text) VALUES (12884901890, 'all set');
INSERT INTO words (rowid, text) VALUES (12884901891, 'quotes and and and and');
INSERT INTO words (rowid, text) VALUES (12884901892, 'nulls');
INSERT INTO words (rowid, text) VALUES (12884901893, 'naive cafe 日本 本語 語 🦀');
INSERT INTO words (rowid, text) VALUES (12884901894, 'failed');
INSERT INTO words (rowid, text) VALUES (17179869184, 'A day on the island');
INSERT INTO words (rowid, text) VALUES (17179869185, 'Which ferry arrives before noon?');
INSERT INTO words (rowid, text) VALUES (17179869186, 'timetable
');
INSERT INTO words (rowid, text) VALUES (17179869187, 'the 10 40 🦀');
INSERT INTO words (rowid, text) VALUES (21474836480, 'A day on the island');
INSERT INTO words (rowid, text) VALUES (21474836481, 'Which ferry arrives before noon?');
INSERT INTO words (rowid, text) VALUES (21474836482, 'timetable
');
INSERT INTO words (rowid, text) VALUES (21474836483, 'the 10 40 🦀');
INSERT INTO words (rowid, text) VALUES (4294967296, 'A newer session');
INSERT INTO words (rowid, text) VALUES (4294967297, 'with extras');
INSERT INTO words (rowid, text) VALUES (4294967298, 'done');
INSERT INTO words (rowid, text) VALUES (8589934593, 'turn 1');
INSERT INTO words (rowid, text) VALUES (8589934594, 'turn 2');
INSERT INTO words (rowid, text) VALUES (8589934595, 'turn 3');
INSERT INTO words (rowid, text) VALUES (8589934599, 'turn 7');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence (name, seq) VALUES ('changes', 12);
INSERT INTO sqlite_sequence (name, seq) VALUES ('sessions', 9);
