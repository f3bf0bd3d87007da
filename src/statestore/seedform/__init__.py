"""The seed's form of a session: one JSON object, as the Rust program reads and writes it.

``text`` reads that form and knows where everything stands in it; ``render`` makes it from a stored session;
``notes`` is what we keep in it, under ``metadata.statestore``, that the seed has no field for.
"""

from statestore.seedform.render import session_json

__all__ = ["session_json"]
