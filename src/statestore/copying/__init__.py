"""Copying a whole store into another, whatever engines the two are: everything, byte for byte, and verified.

`copy_store` is for plain code, `async_copy_store` for event loops. Both work on engines, not on the model, so that
what no program of today understands is copied as well. A copy that was interrupted is run again, and goes on.
"""

from statestore.copying.calling import async_copy_store, copy_store
from statestore.copying.telling import CopyIncomplete, CopyProgress, CopyRefused, CopyReport

__all__ = ["CopyIncomplete", "CopyProgress", "CopyRefused", "CopyReport", "async_copy_store", "copy_store"]
