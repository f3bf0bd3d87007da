"""Sessions of Google's Agent Development Kit in a statestore: a session service for its runners.

`service` is the contract; `loading`, `listing` and `appending` do its work, on what these hold:

- `places`: where a session and the state of its app and its user are kept.
- `moments`: ADK's times, which are seconds as floats, as ours.
- `events`: events as JSON, and back.
- `scopes`: a state as the parts that belong to the session, its user and its app.
- `shared`: the state of apps and users, one document each.
- `seen`: what a session object knew of the store when it was loaded.
"""

from statestore.adapters.requirements import check_version, unavailable

try:
    import google.adk.sessions  # noqa: F401  # pyright: ignore[reportUnusedImport] - is it there?
except ImportError as error:
    raise unavailable("google-adk") from error
check_version("google-adk")

from statestore.adapters.google_adk.listing import SessionPage  # noqa: E402 - only if the framework is there
from statestore.adapters.google_adk.service import StateStoreSessionService  # noqa: E402
from statestore.adapters.google_adk.staleness import StaleSessionError  # noqa: E402

__all__ = ["SessionPage", "StaleSessionError", "StateStoreSessionService"]
