"""``python -m statestore.conformance URL``: run every case against the engine behind a URL, and print a report."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from statestore.conformance.report import Report

T = TypeVar("T")
NOT_INSTALLED: Final = "the suite needs pytest and hypothesis: pip install 'statestore[conformance]'"
DESCRIPTION: Final = """\
Run every promise of the engine contract against the engine behind URL; exit with 1 if one is broken.

{place} in the URL stands for the path of a fresh directory, as in 'file:{place}': each case gets a storage of its
own. Without it all cases use the one store, which must be empty, and is emptied before each case and at the end."""


def main(arguments: list[str] | None = None) -> int:
    """Run the suite; 0 if every promise is kept, 1 if one is broken, 2 if it could not be run."""
    parser = argparse.ArgumentParser(
        prog="python -m statestore.conformance",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", help="memory:, file:{place}, or the URL of an empty store")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--examples", type=int, metavar="N", help="how many histories the state machine tries in each face"
    )
    parser.add_argument("-k", metavar="WORDS", default="", help="try only what matches, as pytest's -k does")
    options = parser.parse_args(arguments)
    if not all(map(find_spec, ("pytest", "hypothesis"))):
        parser.error(NOT_INSTALLED)

    from statestore import StateStoreError, __version__
    from statestore.conformance.capabilities import offered_by
    from statestore.conformance.faces import FACES
    from statestore.conformance.report import Report, Subject
    from statestore.conformance.storage import empty, is_empty
    from statestore.opening import engine_for

    url: str = options.url
    is_shared = url != "memory:" and "{place}" not in url
    try:
        engine = engine_for(url)
        offers = offered_by(engine)
        shown = engine.url if is_shared else url
        if is_shared and not _with_engine(url, is_empty):
            parser.error(f"{shown} is not empty: the suite deletes what it finds, so it needs a store of its own")
    except StateStoreError as error:
        parser.error(str(error))
    except Exception as error:  # noqa: BLE001 - an engine that is not even half an engine
        parser.exit(1, f"the engine could not be opened and listed: {error!r}\n")
    subject = Subject(url, shown, is_shared, options.examples, offers)
    report = Report(subject, is_live=not options.json, is_partial=bool(options.k))
    if not options.json:
        print(f"statestore {__version__}, conformance of {shown}, {' and '.join(FACES)}")
        print(f"offers {', '.join(sorted(offers)) or 'nothing'} besides")
    _run(report, options.k)
    if is_shared:
        _with_engine(url, empty)
    if options.json:
        print(json.dumps(report.as_json(__version__), indent=2, ensure_ascii=False))
    else:
        print(f"\n{report.summary()}")
    return 0 if report.is_good else 1


def _run(report: Report, words: str) -> None:
    """Run the cases under pytest, with nobody's settings but ours."""
    import pytest

    os.environ.pop("PYTEST_ADDOPTS", None)
    with tempfile.TemporaryDirectory(prefix="statestore-conformance-") as directory:
        pytest.main(
            [
                *("-c", os.devnull, "--rootdir", directory, "--basetemp", str(Path(directory, "cases"))),
                *("-p", "no:terminal", "-p", "no:cacheprovider", "--noconftest", "-k", words),
                str(Path(__file__).with_name("subject.py")),
            ],
            plugins=[report],
        )


def _with_engine(url: str, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    """Do something with an engine that is opened for it."""
    from statestore.bridge import LoopHost
    from statestore.opening import engine_for

    async def run() -> T:
        engine = LoopHost(engine_for(url)).engine
        await engine.open()
        try:
            return await work(engine)
        finally:
            await engine.close()

    return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
