"""Settings that name a store in place of its rows: query points, held-out rows."""

from __future__ import annotations

from streamkernel.errors import ParameterError
from streamkernel.kinds import Predictor, check_options
from streamkernel.pursuit import AUTO
from streamkernel.table import Table, open_table
from streamkernel.type_aliases import Fields
from streamkernel.wording import option

_MOST_QUERIES = 5000


def with_stores_opened(kind: Predictor, given: Fields) -> Fields:
    """Return the settings with the stores opened.

    Raises
    ------
    ParameterError
        The estimator has no such setting (the store is then not opened), or there are too many query points.
    """
    found = dict(given)
    if isinstance(given.get("queries"), str):
        check_options(kind, ["queries"])
        found["queries"] = _points(given["queries"])
    if isinstance(given.get("validation"), str) and given["validation"] != AUTO:
        check_options(kind, ["validation"])
        found["validation"] = open_table(given["validation"], classify=kind.classify)
    return found


def _points(store: str) -> Table:
    """Open a store of at most 5000 query points."""
    table = open_table(store).without_targets()
    if table.n_rows > _MOST_QUERIES:
        raise ParameterError(
            f"{option('queries', store)} has {table.n_rows} rows; query points cost as basis functions do: "
            f"give at most {_MOST_QUERIES}"
        )
    return table
