"""LangChain on a statestore: a chat whose history outlives the process, and goes on in another framework.

    pip install 'statestore[langchain]'
    python examples/langchain_chat.py [URL]

No network and no key: the model says what is written below.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from statestore import StateStore
from statestore.adapters.handoff import messages_for
from statestore.adapters.langchain import StateStoreChatMessageHistory


def main(url: str) -> None:
    """Two turns, an interruption between them, and a look at what was kept."""
    model = FakeListChatModel(responses=["The 10:40 arrives before noon.", "Booked: the 10:40."])
    rules = SystemMessage("Be short.")

    for question in ("Which ferry arrives before noon?", "Book it."):
        with StateStore.open(url) as store:  # opened and closed each time, as two processes would
            history = StateStoreChatMessageHistory("trip", store, user_id="alice")
            asked = HumanMessage(question)
            answer = model.invoke([rules, *history.messages, asked])
            history.add_messages([asked, answer])
            print("agent:", answer.content)

    with StateStore.open(url) as store:
        for summary in store.list_sessions(user_id="alice"):
            print(summary.id, "-", summary.title, "-", summary.message_count, "messages")
        trip = store.load_session("trip")
        assert trip is not None
        for item in messages_for("openai-agents", trip):
            print("for another framework:", item)


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else str(Path(directory) / "state.db"))
