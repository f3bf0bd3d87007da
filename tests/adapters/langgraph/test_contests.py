"""Two processes write to one thread at once, and nothing is lost."""

from __future__ import annotations

from adapters.contests import WRITES, two_processes
from adapters.langgraph.graphs import thread
from adapters.langgraph.writers import put_checkpoints, remember
from statestore import StateStore
from statestore.adapters.langgraph import StateStoreSaver, StateStoreStore


def test_two_processes_keep_every_checkpoint_and_every_write(store_url: str) -> None:
    two_processes(put_checkpoints, store_url)
    with StateStoreSaver(store_url) as saver:
        found = list(saver.list(thread("shared")))
        assert len(found) == 2 * WRITES
        for writer in ("a", "b"):
            own = [one for one in found if one.metadata["writer"] == writer][::-1]  # type: ignore[typeddict-item]
            assert [one.metadata["step"] for one in own] == list(range(WRITES))
            for number, one in enumerate(own):
                said = [message.content for message in one.checkpoint["channel_values"]["messages"]]
                assert said == [f"{writer}:{before}" for before in range(number + 1)]
                assert [value for _, _, value in one.pending_writes or []] == [f"{writer}:{number}"]
    with StateStore.open(store_url) as store:
        (summary,) = store.list_sessions()
        assert (summary.message_count, summary.event_count) == (2 * WRITES, 4 * WRITES)


def test_two_processes_keep_every_item_of_memory(store_url: str) -> None:
    two_processes(remember, store_url)
    with StateStoreStore(store_url) as store:
        found = store.search(("shared",), limit=1000)
        assert {item.key for item in found} == {f"{name}:{number}" for name in "ab" for number in range(WRITES)}
        assert store.list_namespaces() == [("shared",)]
