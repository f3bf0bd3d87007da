"""Stores of sessions that agent frameworks ship with, doing the same work side by side: ``make bench-peers``."""
