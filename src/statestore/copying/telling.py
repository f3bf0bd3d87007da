"""What a copy tells: how far it is, what it did, and why it could not."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final, Literal

from msgspec import Struct

from statestore.errors import StateStoreError
from statestore.stored import Problem

Phase = Literal["comparing", "copying", "verifying"]
SHOWN: Final = 10
"""How many items a message names; an error has all of them, up to `KEPT`."""
KEPT: Final = 1000


class CopyProgress(Struct, frozen=True):
    """How far a copy is. Each phase counts from zero."""

    phase: Phase
    """``comparing`` what the target holds already, ``copying``, or ``verifying`` by reading both again."""
    sessions: int
    documents: int
    bytes: int
    sessions_in_all: int
    """How many sessions the phase will go through, as far as was known when it began."""


ReportProgress = Callable[[CopyProgress], object]


class Difference(Struct, frozen=True):
    """An item that stands in the way of a copy, or was not copied as it is."""

    where: str
    """``session ID`` or ``document CATEGORY/NAME.KIND``."""
    what: str


class CopyReport(Struct, frozen=True):
    """What was copied and verified."""

    source: str
    target: str
    sessions: int
    """How many sessions the source has, all of which the target has now; the same goes for what follows."""
    records: int
    documents: int
    bytes: int
    """Of record bodies, metadata and documents together."""
    skipped: int
    """How many sessions and documents were in the target already, and were equal."""
    replaced: int
    """How many were something else in the target, and are what the source has now; only a mirror replaces any."""
    removed: int
    """How many the target had that the source has not, and has no more; only a mirror removes any."""
    digest: str
    """SHA-256 of all that was copied: equal contents, equal digest, whatever the engines."""
    problems: tuple[Problem, ...] = ()
    """What ``check()`` finds in the source. What is listed here and could be read was copied as it is."""
    differences: tuple[Difference, ...] = ()
    """What a mirror removed and replaced, and why; if it is very much, a part of it."""


class Misfits(Struct, frozen=True):
    """What a mirror would replace and remove in a target, counted and named as in a `CopyReport`."""

    target: str
    replaced: int
    removed: int
    differences: tuple[Difference, ...]


class CopyRefused(StateStoreError):
    """The target holds what a copy would have to replace, or somebody else is writing to it."""

    def __init__(self, message: str, differences: Sequence[Difference]) -> None:
        self.differences = tuple(differences)
        super().__init__(message)


class CopyIncomplete(StateStoreError):
    """The copy was made, but for what is named: it could not be read or held, or is not the same in both stores."""

    def __init__(self, message: str, report: CopyReport, differences: Sequence[Difference]) -> None:
        self.report = report
        self.differences = tuple(differences)
        super().__init__(message)


class Differences:
    """Gathers differences, and keeps what is to be told of the first ones."""

    def __init__(self) -> None:
        self.found: list[Difference] = []
        self._places: set[str] = set()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, where: str, what: object) -> None:
        """Note one more; what was noted before is not noted twice."""
        if where in self._places:
            return
        self._places.add(where)
        if len(self.found) < KEPT:
            self.found.append(Difference(where, str(what)))

    def __contains__(self, where: str) -> bool:
        return where in self._places

    @contextmanager
    def noting(self, where: str, *errors: type[Exception]) -> Generator[None]:
        """Note an item that one of these errors is about, and go on."""
        try:
            yield
        except errors as error:
            self.add(where, error)

    def shown(self) -> str:
        """The first ones, as a message names them."""
        named = "; ".join(f"{each.where}: {each.what}" for each in self.found[:SHOWN])
        return named if len(self) <= SHOWN else f"{named}; and {len(self) - SHOWN} more"


class Teller:
    """Counts what a phase has done, and reports it."""

    def __init__(self, report: ReportProgress | None) -> None:
        self._report = report
        self._phase: Phase = "comparing"
        self.begin("comparing", 0)

    def begin(self, phase: Phase, sessions_in_all: int) -> None:
        """A new phase, counted from zero."""
        self._phase = phase
        self._in_all = sessions_in_all
        self.sessions = self.documents = self.bytes = 0

    def tell(self) -> None:
        """Report how far the phase is."""
        if self._report is not None:
            self._report(CopyProgress(self._phase, self.sessions, self.documents, self.bytes, self._in_all))
