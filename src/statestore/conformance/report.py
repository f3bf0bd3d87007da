"""What became of every promise: gathered while pytest runs, printed for people or as JSON."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Any, Final, NamedTuple, cast

import pytest

from statestore.conformance.capabilities import Capability
from statestore.conformance.faces import FACES


class Subject(NamedTuple):
    """The engine that is tried."""

    url: str
    """What it is opened with, password and all."""
    shown: str
    """The same for people to see."""
    is_shared: bool
    """Whether all cases use one storage, which is emptied before each."""
    examples: int | None = None
    offers: frozenset[Capability] = frozenset()
    """What it can do besides."""


SUBJECT: Final = pytest.StashKey[Subject]()


@dataclass
class Verdict:
    """How a promise fared in one face."""

    is_kept: bool = False
    seconds: float = 0
    error: str | None = "it was never tried"


@dataclass
class Promise:
    """One case: what it promises, and how that fared."""

    group: str
    name: str
    text: str
    verdicts: dict[str, Verdict] = field(default_factory=dict[str, Verdict])
    is_offered: bool = True
    """Whether it is about something that the engine offers; if not, what is kept is that it is refused."""

    @property
    def is_kept(self) -> bool:
        """Whether it held wherever it was tried, and was tried at all."""
        return bool(self.verdicts) and all(verdict.is_kept for verdict in self.verdicts.values())


class Report:
    """A pytest plugin that hands the subject over and notes what becomes of it."""

    def __init__(self, subject: Subject, *, is_live: bool, is_partial: bool) -> None:
        """``is_live`` prints promises as they are tried; ``is_partial`` says that not all need be."""
        self.subject = subject
        self.is_partial = is_partial
        self.promises: dict[str, Promise] = {}
        self.complaints: list[str] = []
        self._is_live = is_live
        self._places: dict[str, tuple[Promise, Verdict]] = {}
        self._group = ""

    @property
    def is_good(self) -> bool:
        """Whether every promise is kept, in every face, and there were any."""
        is_complete = all(set(promise.verdicts) == set(FACES) for promise in self.promises.values())
        all_kept = all(promise.is_kept for promise in self.promises.values())
        return bool(self.promises) and is_complete and all_kept and not self.complaints

    def pytest_configure(self, config: pytest.Config) -> None:
        """Hand over what is to be tried."""
        config.stash[SUBJECT] = self.subject
        config.option.tbstyle = "native"  # the others take a second for ten failures

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not even be collected."""
        if not report.passed:
            self.complaints.append(report.longreprtext)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Nothing is left out unless somebody asked for it."""
        if not self.is_partial:
            self.complaints.append(f"{len(items)} cases were left out")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what will be tried; until it has been, it counts as broken."""
        for item in session.items:
            assert isinstance(item, pytest.Function)
            name = item.originalname
            promise = self.promises.setdefault(name, Promise(_group_of(item), name, _text_of(item)))
            capability = getattr(cast("Any", item).function, "capability", None)
            promise.is_offered = capability is None or capability in self.subject.offers
            verdict = promise.verdicts[str(item.callspec.params["face"])] = Verdict()
            self._places[item.nodeid] = promise, verdict

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how one case fared in one face. What is skipped is not kept."""
        promise, verdict = self._places[report.nodeid]
        verdict.seconds += report.duration
        if report.when == "setup":
            verdict.is_kept, verdict.error = report.passed, None
        if not report.passed:
            verdict.is_kept = False
            verdict.error = verdict.error or str(report.longreprtext or report.longrepr)
        if report.when == "teardown" and promise.verdicts[FACES[-1]] is verdict and self._is_live:
            self._print(promise)

    def _print(self, promise: Promise) -> None:
        if promise.group != self._group:
            print(f"\n{promise.group}", flush=True)
            self._group = promise.group
        broken = {face: verdict for face, verdict in promise.verdicts.items() if not verdict.is_kept}
        where = f" [{', '.join(broken)}]" if broken and len(broken) < len(promise.verdicts) else ""
        verdict = "BROKEN" if broken else "kept  " if promise.is_offered else "no    "
        print(f"  {verdict}  {promise.text}{where}", flush=True)
        for face, failed in list(broken.items())[:1]:
            print(f"          {promise.name}[{face}]")
            print("".join(f"          | {line}\n" for line in _last_lines(failed.error or "")), end="", flush=True)

    def summary(self) -> str:
        """The last line."""
        kept, broken, refused = self._counts()
        total = len(self.promises)
        said = f"{total} promises: {kept} kept, {broken} broken" if total else "nothing could be tried"
        if refused:
            said += f", {refused} of what is not offered, and is refused"
        if self.is_partial:
            said += " (not all were tried)"
        return "\n".join([*self.complaints, said])

    def _counts(self) -> tuple[int, int, int]:
        """How many promises are kept, how many are broken, and how many are about what is not offered."""
        promises = self.promises.values()
        kept = sum(promise.is_kept and promise.is_offered for promise in promises)
        broken = sum(not promise.is_kept for promise in promises)
        return kept, broken, len(promises) - kept - broken

    def as_json(self, version: str) -> dict[str, Any]:
        """The whole report as plain values."""
        kept, broken, refused = self._counts()
        return {
            "url": self.subject.shown,
            "statestore": version,
            "faces": list(FACES),
            "is_good": self.is_good,
            "is_partial": self.is_partial,
            "offers": sorted(self.subject.offers),
            "kept": kept,
            "broken": broken,
            "not_offered": refused,
            "complaints": self.complaints,
            "promises": [
                {
                    "group": promise.group,
                    "name": promise.name,
                    "promise": promise.text,
                    "is_kept": promise.is_kept,
                    "is_offered": promise.is_offered,
                    "faces": {
                        face: {"is_kept": verdict.is_kept, "seconds": round(verdict.seconds, 4), "error": verdict.error}
                        for face, verdict in promise.verdicts.items()
                    },
                }
                for promise in self.promises.values()
            ],
        }


def _group_of(item: pytest.Function) -> str:
    """What the class that holds a case says of itself."""
    owner = next(cls for cls in inspect.getmro(item.cls or object) if item.originalname in vars(cls))
    return (inspect.getdoc(owner) or owner.__name__).splitlines()[0]


def _text_of(item: pytest.Function) -> str:
    return (inspect.getdoc(cast("Any", item).function) or item.originalname).splitlines()[0]


def _last_lines(text: str) -> list[str]:
    """The error itself, from the end of a traceback."""
    lines = text.splitlines()
    places = [place for place, line in enumerate(lines) if line.startswith('  File "')]
    rest = dropwhile(lambda line: line.startswith("    "), lines[places[-1] + 1 :] if places else lines)
    return [line.strip() for line in rest if line.strip()][:8]
