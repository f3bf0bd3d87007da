"""Input that nobody of good will would give: every answer is a value or an error of ours, and nothing else changes."""
