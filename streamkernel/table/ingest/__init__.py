"""Sources into stores: one reader a file, one writer, one shuffle."""

from __future__ import annotations

from streamkernel.table.ingest._files import is_file_of_columns
from streamkernel.table.ingest.append import append_rows
from streamkernel.table.ingest.ingest import ingest, suggest_schema
from streamkernel.table.ingest.progress import Progress

__all__ = ["Progress", "append_rows", "ingest", "is_file_of_columns", "suggest_schema"]
