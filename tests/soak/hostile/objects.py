"""Python objects that nobody of good will passes: they hold themselves, lie about what they are, or raise."""

from __future__ import annotations

import dataclasses
import datetime as moments
import decimal
import enum
import uuid
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable
from random import Random
from typing import Any, Final, NoReturn

from soak.hostile.mutation import TEXTS, odd_value


class Evil(Exception):
    """What the objects raise; whoever calls their methods lets it through, or does not call them."""


class EvilText(str):
    """A text that says otherwise of itself."""

    __slots__ = ()

    def __str__(self) -> str:
        return "../../somewhere/else"

    def __repr__(self) -> str:
        return "'quiet'"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1

    def __len__(self) -> int:
        return 1

    def __contains__(self, part: object) -> bool:
        return False

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return b"x"


class EvilNumber(int):
    """A number that compares as it likes."""

    def __lt__(self, other: object) -> bool:
        return True

    __gt__ = __le__ = __ge__ = __lt__

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 2


class EvilDict(dict[Any, Any]):
    """A dict whose members are others each time."""

    def items(self) -> Any:
        return [("a", object())]

    def __iter__(self) -> Any:
        return iter(["\ud800"])


class Unhashable:
    """An object that can be neither compared nor hashed nor shown."""

    def _refuse(self, *_: object) -> NoReturn:
        raise Evil("no")

    __eq__ = __repr__ = __str__ = __bool__ = __len__ = __iter__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class Colour(enum.Enum):
    """Something that is taken apart."""

    RED = "red"
    ODD = object()


@dataclasses.dataclass
class Holder:
    """Something with parts."""

    part: Any


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append({"again": circle})
    return circle


def _deep(make: Callable[[Any], Any], depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = make(value)
    return value


OBJECTS: Final[tuple[Callable[[], Any], ...]] = (
    object,
    Unhashable,
    _circle,
    lambda: _deep(lambda value: [value], 1500),
    lambda: _deep(lambda value: {"k": value}, 99),
    lambda: _deep(Holder, 300),
    lambda: EvilText("text"),
    lambda: EvilText("\ud800"),
    lambda: EvilText("x" * 500),
    lambda: EvilText("../\u00e9"),
    lambda: EvilText("\u00e9"),
    lambda: EvilNumber(5),
    lambda: EvilNumber(2**70),
    lambda: EvilDict(a=1),
    lambda: {EvilText("k"): 1},
    lambda: {1: 2},
    lambda: {None: 1},
    lambda: {("a",): 1},
    lambda: 10**5000,
    lambda: -(10**5000),
    lambda: float("nan"),
    lambda: float("-inf"),
    lambda: decimal.Decimal("NaN"),
    lambda: decimal.Decimal("1e400"),
    lambda: 1 + 2j,
    lambda: b"bytes",
    lambda: bytearray(b"\xff"),
    lambda: memoryview(b"x"),
    lambda: {1, 2},
    lambda: frozenset("ab"),
    lambda: range(3),
    lambda: (item for item in "ab"),
    lambda: deque([1]),
    lambda: OrderedDict(a=1),
    lambda: UserDict(a=1),
    lambda: Colour.RED,
    lambda: Colour.ODD,
    lambda: Colour,
    lambda: Holder(object()),
    lambda: Holder(Holder(float("inf"))),
    uuid.uuid4,
    lambda: moments.datetime(2026, 1, 1),  # noqa: DTZ001 - which is refused
    lambda: moments.datetime.max.replace(tzinfo=moments.timezone(moments.timedelta(hours=-23))),
    lambda: moments.date(2026, 1, 1),
    lambda: moments.timedelta.max,
    lambda: NotImplemented,
    lambda: ...,
    lambda: print,
    lambda: type,
    lambda: True,
    lambda: "\ud800",
    lambda: "\0" * 3,
    lambda: "x" * 50_000,
)


def hostile_object(chance: Random) -> Any:
    """An object of any kind; or a plain value, or a text."""
    match chance.randrange(4):
        case 0:
            return odd_value(chance)
        case 1:
            return chance.choice(TEXTS)
        case 2:
            return [chance.choice(OBJECTS)(), {"in": chance.choice(OBJECTS)()}][chance.randrange(2)]
        case _:
            return chance.choice(OBJECTS)()
