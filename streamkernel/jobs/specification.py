"""The work of a job as plain JSON: an estimator's name and settings, and locations. No pickle, no arrays."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Self

from streamkernel.blobs import normalised
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.kinds import KINDS, Kind
from streamkernel.records import JsonObject, Record
from streamkernel.records.json_types import AtLeast, Count
from streamkernel.type_aliases import Unchecked

if TYPE_CHECKING:
    from streamkernel.settings.basis import BasisSettings
    from streamkernel.table import Table

# Settings and tables are imported where they are opened: those who read or stop a job do without them.


class JobSpecification(Record, kw_only=False):
    """One fit.

    Attributes
    ----------
    estimator : name of the estimator, a key of `KINDS`.
    settings : its settings by name, plain JSON.
    table, model : locations of the rows and of the fitted model.
    rows : half-open slice of the stored rows, None for all.
    queries : location of the query points of a committee.
    overwrite : whether an existing model may be replaced.
    memory_limit : bytes, for all processes together; None for the machines' memory.
    lease_seconds : seconds without a record of the driver after which it is replaced.
    weight : the column that is the row weights, or "none" for no weights; None for those of the table.
    """

    estimator: str
    settings: JsonObject
    table: str
    model: str
    rows: tuple[int | None, int | None] | None = None
    queries: str | None = None
    overwrite: bool = False
    memory_limit: Count | None = None
    lease_seconds: Annotated[float, AtLeast(1.0)] = 15.0
    weight: str | None = None

    @classmethod
    def from_config(cls, config: object, where: str = "") -> Self:
        work = super().from_config(config, where)
        if work.estimator not in KINDS:
            raise ModelFormatError(f"its estimator {work.estimator!r:.60} is unknown to this release")
        return work

    @property
    def kind(self) -> Kind:
        return KINDS[self.estimator]

    def opened_settings(self) -> Any:
        """The settings as an object; the query points are read."""
        from streamkernel.kinds import check_options, with_stores_opened

        # Jobs that an earlier release wrote down have no metric, and mean none.
        given = {"metric": "none", **self.settings}
        given |= {} if self.queries is None else {"queries": self.queries}
        check_options(self.kind, given)
        # Not `settings_of`: here all settings are given, with the defaults among them; a None is a chosen value, and
        # the default may differ from it.
        return self.kind.settings(**with_stores_opened(self.kind, given))

    def with_stores(self, settings: BasisSettings) -> Any:
        """Settings that were checked already, with the stores opened that they name."""
        from streamkernel.kinds import with_stores_opened
        from streamkernel.pursuit import AUTO

        named = {"queries": self.queries, "validation": self.settings.get("validation")}
        named = {name: store for name, store in named.items() if isinstance(store, str) and store != AUTO}
        return replace(settings, **with_stores_opened(self.kind, named)) if named else settings

    def tables(self) -> tuple[Table, Table]:
        """All rows of the table, and those of the fit."""
        from streamkernel.table import with_weights_of

        whole = with_weights_of(self.kind.open(self.table), self.weight)
        if self.rows is None:
            return whole, whole
        first, last = self.rows
        return whole, whole.slice(whole.start if first is None else first, whole.stop if last is None else last)


def location_of(what: str, value: Unchecked) -> str:
    """A location as text that has the same meaning in another process.

    Raises
    ------
    ParameterError
        The value is an array or a table of this process.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str) and value:
        return str(normalised(value))
    raise ParameterError(
        f"a job needs the location of the {what}, not a {type(value).__name__}: the cluster cannot see what is in this "
        "process; streamkernel.ingest(X, 'rows.zarr') writes rows to a store, and rows=(a, b) takes a part of them"
    )
