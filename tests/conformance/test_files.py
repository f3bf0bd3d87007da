"""``file:`` keeps the engine contract."""

from __future__ import annotations

from statestore.conformance import EngineContract
from statestore.conformance.capabilities import CAPABILITIES, offered_by
from statestore.engines.files import FilesEngine


class TestFilesEngine(EngineContract):
    """Every promise."""

    url = "file:{place}"
    offers = offered_by(FilesEngine(".")) & CAPABILITIES
