"""Errors of rows that must have the columns of other ones: options of columns have been chosen with these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamkernel.errors import DataError
from streamkernel.wording import mentions

_OF_FIRST_ROWS = {"schema", "categories", "dates", "missing"}


@contextmanager
def columns_settled(way_out: str) -> Iterator[None]:
    """Add to errors of data that name options of columns where these options belong.

    Parameters
    ----------
    way_out : what to do to have them, as "fit the model again with such an option".
    """
    try:
        yield
    except DataError as error:
        if not any(each.name in _OF_FIRST_ROWS for each in mentions(error.message)):
            raise
        raise type(error)(f"{error.message}; {way_out}", value=error.value) from error
