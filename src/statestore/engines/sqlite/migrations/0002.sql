-- A session that is written again and again is busy: the indexes of listings leave it out, so that they need not move
-- each time it is written. Listings sort the few that are busy, and put them in their places.
ALTER TABLE sessions ADD COLUMN is_busy INTEGER NOT NULL DEFAULT 0;

DROP INDEX sessions_newest;
DROP INDEX sessions_newest_of_user;
CREATE INDEX sessions_newest ON sessions (age, age_rest, id) WHERE is_busy = 0;
CREATE INDEX sessions_newest_of_user ON sessions (user_id, age, age_rest, id) WHERE is_busy = 0;
CREATE INDEX sessions_busy ON sessions (is_busy) WHERE is_busy <> 0;
