"""The SQL of this engine, from ``queries.sql``."""

from __future__ import annotations

import os
from typing import Final

from statestore.engines.statements import named_statements

SQL: Final = named_statements(os.path.dirname(__file__))
