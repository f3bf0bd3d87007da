"""Conversations of Pydantic AI in a statestore: a durable `ConversationStore`.

`conversations` is the contract, on what these hold:

- `entries`: the entries of a log as records, and back.
- `kept`: what a session's metadata tell of its conversation.
- `finding`: in which session an entry lies.
- `histories`: the way from an entry back to the first, through forks.
- `writing` and `deleting`: what changes a conversation, in one commit.
"""

from statestore.adapters.requirements import check_version, unavailable

try:
    import pydantic_ai.conversation_store  # noqa: F401  # pyright: ignore[reportUnusedImport] - is it there?
except ImportError as error:
    raise unavailable("pydantic-ai") from error
check_version("pydantic-ai")

from statestore.adapters.pydantic_ai.conversations import StateStoreConversations  # noqa: E402 - only if it is there

__all__ = ["StateStoreConversations"]
