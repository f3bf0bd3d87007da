"""What every case shares: how its engine is made, and how a case becomes a test."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.capabilities import CAPABILITIES, Capability
from statestore.conformance.faces import FACES, FaceName, face_named
from statestore.engine import Engine
from statestore.opening import engine_for

C = TypeVar("C", bound="Contract")
Test = Callable[[Any, FaceName, Path], None]


class Contract:
    """How to get at the engine that is tried. Subclasses say so with ``url`` or ``make_engine``."""

    url: ClassVar[str] = ""
    """The store's URL, with ``{place}`` where the path of a fresh directory goes: ``"file:{place}"``."""

    reopens: ClassVar[bool] = True
    """Whether what is stored outlives the engine. Only ``memory:`` may say no."""

    offers: ClassVar[frozenset[Capability]] = frozenset()
    """What the engine can do besides: ``search``, ``watch``, ``wake`` (who watches), ``point`` (out whom a change
    concerns), ``group`` (commit), ``several`` (read at once), ``backup``, ``compact``, ``repair``. It must say so here,
    and have the methods of these and of no others. What is not offered is tried, too: it must be refused."""

    examples: ClassVar[int] = 40
    """How many histories the state machine tries in each face."""

    steps: ClassVar[int] = 30
    """How long such a history is at most."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.offers <= CAPABILITIES:
            raise TypeError(f"{cls.__name__}.offers is some of {sorted(CAPABILITIES)}, not {cls.offers!r}")

    def make_engine(self, place: Path) -> Engine:
        """A new engine, not opened, whose storage belongs to this place: the same place, the same storage.

        A place that was never seen before is an empty storage. It is a path at which nothing exists yet, in a
        directory that does; an engine that stores elsewhere derives a name from it.
        """
        if not self.url:
            raise NotImplementedError(f"{type(self).__name__} gives neither a url nor make_engine")
        return engine_for(self.url.replace("{place}", str(place)))

    def make_copys_engine(self, path: Path) -> Engine:
        """A new engine, not opened, on what ``backup`` wrote to this path, whose name ends in ``.db``."""
        return engine_for(path)

    async def prepare(self, engine: Engine) -> None:
        """Called with the first engine that is opened on a storage, for those that must empty it themselves."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Every case runs in every face."""
        if "face" in metafunc.fixturenames:
            metafunc.parametrize("face", FACES)


def case(promise: Callable[[C, Bench], Coroutine[Any, Any, None]]) -> Test:
    """Make a test of a coroutine function: in one face, on a storage of its own. Its docstring is the promise."""

    def test(self: C, face: FaceName, tmp_path: Path) -> None:
        __tracebackhide__ = True
        run_on_bench(self, face, tmp_path / "store", lambda bench: promise(self, bench))

    # Not functools.wraps: pytest would look through it and ask for the wrong arguments.
    test.__name__, test.__qualname__ = promise.__name__, promise.__qualname__
    test.__module__, test.__doc__ = promise.__module__, promise.__doc__
    return test


def offered(capability: Capability) -> Callable[[Callable[[Any, Bench], Coroutine[Any, Any, None]]], Test]:
    """Like `case`, for what not every engine offers. Where it is not offered, that it is refused is tried instead."""

    def offered_case(promise: Callable[[Any, Bench], Coroutine[Any, Any, None]]) -> Test:
        async def tried(self: Contract, bench: Bench) -> None:
            __tracebackhide__ = True
            bench.assert_declared(capability)
            if capability in self.offers:
                await promise(self, bench)
            else:
                await bench.assert_not_offered(capability)

        tried.__name__, tried.__qualname__ = promise.__name__, promise.__qualname__
        tried.__module__, tried.__doc__ = promise.__module__, promise.__doc__
        test = case(tried)
        cast("Any", test).capability = capability
        return test

    return offered_case


def run_on_bench(
    contract: Contract, face_name: FaceName, place: Path, work: Callable[[Bench], Coroutine[Any, Any, None]]
) -> None:
    """Open an engine, do the work, close what is open."""
    __tracebackhide__ = True
    if not _asserts_are_live():
        raise RuntimeError("assert statements are switched off (python -O), so nothing would be proven")

    async def run(bench: Bench) -> None:
        __tracebackhide__ = True
        await bench.start()
        try:
            await work(bench)
        finally:
            await bench.stop()

    face = face_named(face_name)
    try:
        face.run(run(Bench(contract, face, place)))
    finally:
        face.close()


def _asserts_are_live() -> bool:
    try:
        assert not FACES
    except AssertionError:
        return True
    return False
