"""LlamaIndex's chat stores in a statestore: a session for each key.

`chat_stores` are the contracts; `queue` is a conversation whose oldest messages are archived or dropped.
"""

from statestore.adapters.requirements import check_version, unavailable

try:
    import llama_index.core.storage.chat_store  # noqa: F401  # pyright: ignore[reportUnusedImport] - is it there?
except ImportError as error:
    raise unavailable("llama-index") from error
check_version("llama-index")

from statestore.adapters.llama_index.chat_stores import (  # noqa: E402 - only if the framework is there
    StateStoreChatStore,
    StateStoreDBChatStore,
)

__all__ = ["StateStoreChatStore", "StateStoreDBChatStore"]
