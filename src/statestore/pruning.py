"""Which sessions may go: the settings, the judgement, and how often it is worth looking."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import Struct

from statestore.counts import check_whole_number
from statestore.errors import InvalidValue
from statestore.stored import SessionSummary
from statestore.timestamps import HOUR_NS, nanoseconds


class PruneConfig(Struct, frozen=True):
    """How much to keep. What is not named stays at 100 sessions and 7 days, and what goes is gone for good.

    Zero means no limit; any whole number is valid, however large. ``trash_hours`` keeps what goes for a while.
    """

    max_sessions: int = 100
    ttl_hours: int = 168
    max_sessions_per_user: int = 0
    trash_hours: int = 0
    """How long what goes can be restored; 0: it is gone at once."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_whole_number(f"PruneConfig.{name}", getattr(self, name))


def check_config(config: object) -> PruneConfig:
    """The settings, or the usual ones for ``None``; `InvalidValue` for anything else."""
    if config is None:
        return PruneConfig()
    if not isinstance(config, PruneConfig):
        raise InvalidValue(f"how to prune is told by a PruneConfig, not by {type(config).__name__}")
    return config


class Doomed(Struct, frozen=True):
    """A session that a prune would delete, and why."""

    session: SessionSummary
    reason: Literal["too old", "too many", "too many of this user"]


def doomed(newest_first: Iterable[SessionSummary], config: PruneConfig, now_ns: int) -> list[Doomed]:
    """Which of these sessions go: the ones past their time, then the oldest beyond the limits."""
    found: list[Doomed] = []
    kept = 0
    kept_of: Counter[str] = Counter()
    cutoff = now_ns - config.ttl_hours * HOUR_NS
    for summary in newest_first:
        if config.ttl_hours and nanoseconds(summary.updated_text) < cutoff:
            found.append(Doomed(summary, "too old"))
        elif config.max_sessions_per_user and kept_of[summary.user_id] >= config.max_sessions_per_user:
            found.append(Doomed(summary, "too many of this user"))
        elif config.max_sessions and kept >= config.max_sessions:
            found.append(Doomed(summary, "too many"))
        else:
            kept += 1
            kept_of[summary.user_id] += 1
    return found


class PruneThrottle:
    """Says "now" at most once per cooldown, to one caller, however many ask."""

    def __init__(self, cooldown_secs: float = 60, *, clock: Callable[[], float] = time.monotonic) -> None:
        if not isinstance(cooldown_secs, (int, float)) or not cooldown_secs >= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"PruneThrottle.cooldown_secs is a number from 0 up, not {cooldown_secs!r}")
        self.cooldown_secs = cooldown_secs
        self._clock = clock
        self._lock = threading.Lock()
        self._last: float | None = None

    def should_prune(self) -> bool:
        """Whether it is this caller's turn; a ``True`` takes the turn."""
        with self._lock:
            now = self._clock()
            if self._last is not None and now - self._last < self.cooldown_secs:
                return False
            self._last = now
            return True

    def give_back(self) -> None:
        """The turn came to nothing: let the next one who asks have it."""
        with self._lock:
            self._last = None

    def is_idle(self) -> bool:
        """Whether whoever asks next would have the turn."""
        with self._lock:
            return self._last is None or self._clock() - self._last >= self.cooldown_secs


_MANY: Final = 1000
"""How many throttles of users are kept before those are forgotten that nobody waits for."""


class UserThrottles:
    """A throttle for each user whose store prunes: one user's turn is not another's."""

    def __init__(self, cooldown_secs: float) -> None:
        self._cooldown_secs = cooldown_secs
        self._lock = threading.Lock()
        self._throttles: dict[str, PruneThrottle] = {}
        self._many = _MANY

    def of(self, user_id: str) -> PruneThrottle:
        """The user's throttle. Those that nobody is waiting for are forgotten when there are many."""
        with self._lock:
            if len(self._throttles) >= self._many:
                self._throttles = {
                    user: throttle for user, throttle in self._throttles.items() if not throttle.is_idle()
                }
                self._many = max(_MANY, 2 * len(self._throttles))  # else each call would look at all of them
            return self._throttles.setdefault(user_id, PruneThrottle(self._cooldown_secs))
