"""The store: what sessions and documents mean, written once, on top of any engine."""
