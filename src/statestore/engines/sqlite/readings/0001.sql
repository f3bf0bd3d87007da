-- No session was busy yet. Once somebody has brought the file up to date, the column itself comes first, and counts.
CREATE TEMP VIEW sessions AS SELECT *, 0 AS is_busy FROM main.sessions;
