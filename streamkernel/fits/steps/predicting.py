"""What the fits of models that predict share: the plan before their steps, the frame around these, the record after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from streamkernel.engine import Machine, Plan, Session
from streamkernel.fits.steps.check_rows import CheckRows
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.fits.steps.record import basis_arrays, fitted_fields
from streamkernel.fits.steps.run import checked_plan, measured, size_of_fit
from streamkernel.models.predicting import PredictingModel
from streamkernel.records import Run
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Float

S = TypeVar("S", bound=BasisSettings)
M = TypeVar("M", bound=PredictingModel)


class PredictingRun:
    """The run of a fit of a model that predicts. When it is made, the plan is checked; then a fit takes its steps::

        run = PredictingRun(table, settings, session, plan_one_class, estimator="one-class", **options)
        with run.measured():
            chosen = choose_basis(run.table, settings, session, run.n)
            ...
        return run.model(OneClassModel, chosen, None, residual_path, arrays, outliers=outliers, ...)

    Parameters
    ----------
    table : rows of the fit.
    settings : options of the fit.
    session : session that runs the sweeps, with its checkpoints.
    plan_of : function that plans the fit for a table, settings, a machine and a basis size.
    estimator : name of the estimator.
    whole : table that `table` is a slice of; its other rows are used for the held-out picture.
    memory_limit : bytes of all processes together; None for what the machines have (`memory_limits`). A plan beyond
        it is refused before anything is read.
    driver_bytes : bytes resident in the driver before the fit.
    targets_are_2d : whether predictions of a single target have shape (m, 1); several targets always have columns.
    plan : plan for the session's machine that the caller has made and checked; `memory_limit` and `driver_bytes` are
        then not used.

    Attributes
    ----------
    n : basis size.
    table : rows of the fit.

    Raises
    ------
    ParameterError
        As of `BasisSettings.components`.
    ResourceLimitError
        The plan exceeds a limit.
    """

    def __init__(
        self,
        table: Table,
        settings: S,
        session: Session,
        plan_of: Callable[[Table, S, Machine, int], Plan],
        *,
        estimator: str,
        whole: Table | None = None,
        memory_limit: int | None = None,
        driver_bytes: int | None = None,
        targets_are_2d: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self.n = size_of_fit(settings, table)
        table, whole = settings.kernel_rows(table), None if whole is None else settings.kernel_rows(whole)
        self._plan = checked_plan(
            lambda machine, n: plan_of(table, settings, machine, n),
            self.n,
            table,
            session,
            memory_limit,
            driver_bytes,
            plan,
        )
        self.table = table
        self._settings, self._session, self._whole, self._estimator = settings, session, whole, estimator
        self._targets_are_2d = targets_are_2d or (table.n_targets > 1 and table.classes is None)
        self._record: Callable[[], Run]  # once the steps are taken

    @contextmanager
    def measured(self) -> Iterator[None]:
        """The frame around the steps; see `fits.steps.run.measured`."""
        with measured(self._session, self._plan) as self._record:
            yield

    def model(
        self,
        kind: type[M],
        chosen: Chosen,
        check: CheckRows | None,
        residual_path: Float,
        arrays: dict[str, AnyArray],
        **fields: Any,
    ) -> M:
        """The model: what all kinds store of a fit, and the arrays and fields of its own.

        Parameters
        ----------
        check : predictions of some rows beside their targets; None without targets.
        residual_path : (n + 1,) exact residual traces.
        """
        # The rows of the check, and those by which the model knows what it has seen, were read after the last sweep.
        self.table.check_read()
        table = chosen.table
        record = kind.RECORD(
            **{
                **fitted_fields(self._estimator, chosen, self._settings, self.n, len(self._session.records)),
                "target_names": tuple(table.target_names),
                "classes": None if table.classes is None else tuple(table.classes.tolist()),
                "targets_are_2d": self._targets_are_2d,
                "target_scale": tuple(chosen.scale.tolist()),
                "independent": chosen.independent,
                "dtype": str(table.dtype),
                **fields,
            },
            check=None if check is None else check.record,
            run=self._record(),
        )
        found = {} if check is None else check.arrays()
        return kind(record, {**basis_arrays(chosen, residual_path), **arrays, **found})
