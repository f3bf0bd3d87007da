"""What an engine must have: every attribute and method of the contract, and a life from open to close."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.capabilities import OPTIONAL_CALLS, offered_by
from statestore.conformance.changes import ALICE, created, put
from statestore.conformance.contract import Contract, case
from statestore.engine import DocumentQuery, SessionQuery
from statestore.errors import StoreClosed
from statestore.session import Session

CALLS: Final[dict[str, tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "open": ((), {}),
    "close": ((), {}),
    "commit": (([],), {}),
    "read_session": (("s",), {"after": 1, "before": 3, "last": 1}),
    "list_sessions": ((SessionQuery(),), {}),
    "count_sessions": ((SessionQuery(),), {}),
    "get_document": (("notes", "n", "json"), {}),
    "list_documents": ((DocumentQuery("notes"),), {}),
    "list_categories": (("notes",), {}),
    "check": ((), {}),
}
"""Every method of the contract, with arguments that it must take."""


class PartsCases(Contract):
    """An engine is complete."""

    @case
    async def test_every_attribute_of_the_contract_is_there(self, bench: Bench) -> None:
        """The engine says where it runs, how far a batch reaches, and what its URL is."""
        engine = bench.new_engine()
        assert engine.runs_in in ("caller", "worker", "loop")
        assert engine.atomic_scope in ("store", "item")
        assert isinstance(engine.url, str), "the URL is a text"  # pyright: ignore[reportUnnecessaryIsInstance]
        assert ":" in engine.url

    @case
    async def test_every_method_of_the_contract_is_there(self, bench: Bench) -> None:
        """Every method of the contract exists and takes the contract's arguments."""
        engine = bench.new_engine()
        for name, (args, kwargs) in CALLS.items():
            inspect.signature(getattr(engine, name)).bind(*args, **kwargs)
        inspect.signature(engine.list_categories).bind()
        inspect.signature(engine.read_session).bind("s")

    @case
    async def test_what_it_offers_is_what_it_says(self, bench: Bench) -> None:
        """What the engine can do besides is declared, and each of these is there whole."""
        bench.assert_declared()
        engine = bench.new_engine()
        assert offered_by(engine) == self.offers
        for capability in self.offers:
            for name, (args, kwargs) in OPTIONAL_CALLS[capability].items():
                inspect.signature(getattr(engine, name)).bind(*args, **kwargs)

    @case
    async def test_the_url_tells_no_password(self, bench: Bench) -> None:
        """The engine's URL can be shown to anybody, and tells its storage from any other."""
        assert not urlsplit(bench.engine.url).password
        assert bench.engine.url == bench.store.url
        assert (bench.new_engine().url == bench.engine.url) is self.reopens

    @case
    async def test_only_memory_may_forget(self, bench: Bench) -> None:
        """Every engine but memory: keeps what it was given when it is closed."""
        assert self.reopens or bench.engine.url.startswith("memory:")

    @case
    async def test_constructing_an_engine_touches_nothing(self, bench: Bench) -> None:
        """Constructing an engine does no I/O; opening it does."""
        place = bench.place.with_name("untouched")
        engine = self.make_engine(place)
        assert callable(engine.open)
        assert not place.exists()

    @case
    async def test_an_empty_store_answers_everything(self, bench: Bench) -> None:
        """An empty store has no sessions, no documents, no categories and no problems, and then its first ones."""
        engine = bench.engine
        assert await engine.read_session("s") is None
        assert await engine.read_session("s", after=0, before=9, last=1) is None
        assert await engine.list_sessions(SessionQuery()) == []
        assert await engine.count_sessions(SessionQuery()) == 0
        assert await engine.get_document("notes", "n", "json") is None
        assert await engine.list_documents(DocumentQuery("notes")) == []
        assert await engine.list_categories() == []
        assert await engine.list_categories("notes") == []
        assert await engine.check() == []
        await bench.commit(put("n"))
        await bench.commit(created("s"))
        assert [summary.id for summary in await engine.list_sessions(SessionQuery())] == ["s"]
        assert await engine.list_categories() == ["notes"]

    @case
    async def test_an_empty_batch_is_no_work(self, bench: Bench) -> None:
        """A batch without changes happens and has no outcomes."""
        assert await bench.engine.commit([]) == []
        assert await bench.engine.commit(()) == []

    @case
    async def test_check_finds_nothing_wrong_with_what_it_wrote(self, bench: Bench) -> None:
        """A store that only this engine wrote to has no problems."""
        await bench.commit(created("s"), put("n"))
        assert await bench.engine.check() == []
        assert await bench.store.check() == []
        await bench.reopen()
        assert await bench.engine.check() == []

    @case
    async def test_closing_twice_is_closing_once(self, bench: Bench) -> None:
        """close can be called again and does nothing then."""
        engine = bench.face.fit(bench.new_engine())
        await engine.open()
        assert len(await engine.commit([put("n")])) == 1
        await engine.close()
        await engine.close()

    @case
    async def test_a_closed_store_says_so(self, bench: Bench) -> None:
        """After close, every call raises StoreClosed."""
        store = bench.store
        await store.save_json("notes", "n", 1)
        await store.close()
        calls: list[Callable[[], Coroutine[Any, Any, object]]] = [
            lambda: store.load_json("notes", "n"),
            lambda: store.save_session(Session(ALICE)),
            lambda: store.load_session("s"),
            lambda: store.list_sessions(),
            lambda: store.check(),
        ]
        if bench.offers("search"):
            calls.append(lambda: store.search_sessions("word"))
        if bench.offers("watch"):
            calls.append(lambda: store.change_cursor())
        for call in calls:
            with pytest.raises(StoreClosed):
                await call()
        await store.close()
