"""What each of two processes writes in a contest."""

from __future__ import annotations

from strands.types.session import SessionAgent, SessionMessage

from statestore.adapters.strands import StateStoreRepository

SESSION = "contest"


def write_messages(url: str, name: str, count: int) -> None:
    """Both number their messages from 0, as two session managers do, and count in a state of their own."""
    repository = StateStoreRepository(url)
    for number in range(count):
        message = SessionMessage({"role": "user", "content": [{"text": f"{name} {number}"}]}, number)
        repository.create_message(SESSION, "agent", message)
        if number % 10 == 0:
            repository.update_agent(SESSION, SessionAgent(name, {"count": number + 1}, {}))
    repository.update_agent(SESSION, SessionAgent(name, {"count": count}, {}))
    repository.close()
