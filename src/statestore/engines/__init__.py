"""The engines: each knows its storage, and nothing of what is done with it."""
