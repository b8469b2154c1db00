"""Sources into stores: one reader a file, one writer, one shuffle."""

from __future__ import annotations

from streamkernel.table.ingest._appended import REPEATED_POLICIES
from streamkernel.table.ingest.append import append_rows
from streamkernel.table.ingest.ingest import ingest, names_in, suggest_schema
from streamkernel.table.ingest.progress import Progress
from streamkernel.table.ingest.readers.files import is_file_of_arrays, is_file_of_columns
from streamkernel.table.ingest.readers.open import choice_of_arrays
from streamkernel.table.ingest.readers.standard_input import is_standard_input, received
from streamkernel.table.ingest.settled import columns_settled

__all__ = [
    "REPEATED_POLICIES",
    "Progress",
    "append_rows",
    "choice_of_arrays",
    "columns_settled",
    "ingest",
    "is_file_of_arrays",
    "is_file_of_columns",
    "is_standard_input",
    "names_in",
    "received",
    "suggest_schema",
]
