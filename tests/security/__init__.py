"""What must not be possible, whoever tries: reaching another user's sessions, learning a password."""
