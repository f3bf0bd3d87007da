"""Starting a thread, or telling users that there is none to be had."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from statestore.errors import StoreUnavailable


def started(name: str, target: Callable[..., object], *args: Any) -> threading.Thread:
    """A new thread, which does not keep the interpreter from ending; `StoreUnavailable` if none can be had."""
    thread = threading.Thread(target=target, args=args, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise StoreUnavailable(f"the store needs a thread, and none can be had: {error}") from error
    return thread
