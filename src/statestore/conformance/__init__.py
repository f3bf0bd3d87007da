"""The conformance suite: every promise that the store makes and an engine could break, as a pytest class.

    from statestore.conformance import EngineContract

    class TestMyEngine(EngineContract):
        def make_engine(self, place: Path) -> Engine:
            return MyEngine(place)

Every case runs in both faces of the store. Nothing is skipped: an engine that lacks a part fails. What an engine can
do besides, it declares with ``offers = frozenset({"search", "watch"})``, say, and must do right (the docstring of
``offers`` names all there is); what it does not declare, it must not have, and the store must refuse. With the cases
comes a state machine that tries random histories, reopenings and crashes among them, against an oracle that shares no
code with any engine. ``python -m statestore.conformance URL`` runs all of it and prints a report.

Needs ``pytest`` and ``hypothesis``; ``import statestore`` does not import this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statestore.conformance.suite import EngineContract

__all__ = ["EngineContract"]


def __getattr__(name: str) -> Any:
    """Load the suite when it is asked for: by then pytest is running, and can make its asserts speak."""
    if name != "EngineContract":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pkgutil
    import sys

    import pytest

    modules = (f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
    pytest.register_assert_rewrite(*(module for module in modules if module not in sys.modules))
    from statestore.conformance.suite import EngineContract

    return EngineContract
