"""The schema of a table: what each column of its source is, and how it becomes numbers.

::

    source --look--> declared schema --first pass--> complete schema --second pass--> rows of numbers
                     kinds, policies                 + categories, fills, origins

A complete schema stands with the table and with every model fitted to it: rows of a later source become the same
numbers. Arrow is loaded only where rows are read (`fit`, `encoder`, `suggest`).
"""

from __future__ import annotations

from streamkernel.table.schema._column import (
    DATE_PARTS,
    ENCODINGS,
    KINDS,
    MISSING_POLICIES,
    ROLES,
    UNKNOWN_POLICIES,
    Column,
)
from streamkernel.table.schema.schema import Schema, check_schema_output

__all__ = [
    "DATE_PARTS",
    "ENCODINGS",
    "KINDS",
    "MISSING_POLICIES",
    "ROLES",
    "UNKNOWN_POLICIES",
    "Column",
    "Schema",
    "check_schema_output",
]
