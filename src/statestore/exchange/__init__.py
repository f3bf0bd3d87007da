"""Sessions out of a store and into another: exports for people and for programs, and imports.

`export_sessions` gives the sessions of a store, or of one user, as ``markdown``, ``html``, ``jsonl``, ``json`` or
``openai``; `import_sessions` takes ``jsonl`` and ``json`` back, and a session is then what it was, byte for byte.
`import_path` also takes a directory that the Rust program wrote. `write_whole` writes a file wholly or not at all, and
`check_is_elsewhere` refuses a place that is the store's own. `check_beginning` and `check_directory` tell early that
a file is no export, and a directory no store.
"""

from statestore.copying.elsewhere import check_is_elsewhere
from statestore.exchange.calling import (
    async_export_sessions,
    async_import_sessions,
    check_directory,
    export_sessions,
    import_path,
    import_sessions,
    unlisted_sessions,
)
from statestore.exchange.formats import FORMATS, SUFFIXES, Format
from statestore.exchange.importing import check_beginning
from statestore.exchange.landing import Fate, Imported
from statestore.exchange.parsing import NotAnExport
from statestore.exchange.whole_files import write_whole

__all__ = [
    "FORMATS",
    "SUFFIXES",
    "Fate",
    "Format",
    "Imported",
    "NotAnExport",
    "async_export_sessions",
    "async_import_sessions",
    "check_beginning",
    "check_directory",
    "check_is_elsewhere",
    "export_sessions",
    "import_path",
    "import_sessions",
    "unlisted_sessions",
    "write_whole",
]
