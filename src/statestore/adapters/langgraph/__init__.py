"""LangGraph on a state store: `StateStoreSaver` keeps threads, `StateStoreStore` keeps long-term memory.

``pip install 'statestore[langgraph]'``. A thread is a session, so `statestore ls`, `show`, `search` and `export` work
on it; an item of memory is a JSON document.
"""

from statestore.adapters.requirements import check_version, unavailable

try:
    from statestore.adapters.langgraph.saver import StateStoreSaver
    from statestore.adapters.langgraph.store import StateStoreStore
except ImportError as error:
    raise unavailable("langgraph") from error
check_version("langgraph")

__all__ = ["StateStoreSaver", "StateStoreStore"]
