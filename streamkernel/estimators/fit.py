"""The main job: table -> lengthscale -> basis -> one sweep of sums -> alpha -> model."""

from __future__ import annotations

import contextlib
import platform
import time
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from streamkernel.engine import (
    BASE_BYTES,
    Machine,
    PeakMeter,
    Plan,
    Session,
    Step,
    TableShape,
    check_memory,
    format_bytes,
    make_plan,
    step_of,
)
from streamkernel.errors import ParameterError, SingleClassError, SingularKernelError, StreamKernelWarning
from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.settings import RidgeSettings
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import Moments, NormalEquations, Sample, stream_generator
from streamkernel.selection import Problem, RowCache, Selection
from streamkernel.selection.problem import unfilled_basis
from streamkernel.solvers import LengthscaleChoice, RidgeSolution, RidgeSystem, choose_lengthscale
from streamkernel.table import Scaler, Table, TableStatistics

__all__ = ["fit_ridge", "plan_ridge"]

_SAMPLE_ROWS = {"median": 1000, "auto": 4000}
_SAMPLE_STREAM = (6,)
_CHECK_ROWS, _CHECK_RUNS = 2000, 8
_COMPILING_BYTES = 60 << 20  # what the compiler and its loops may still add to a process that has just begun


@dataclass(frozen=True)
class _Targets:
    """Mean and spread of each target, for centring and for common units."""

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]


def plan_ridge(table: Table, settings: RidgeSettings, machine: Machine, n: int | None = None) -> Plan:
    """What the fit will cost: sweeps, bytes, flops, memory.

    Parameters
    ----------
    machine : workers and threads, with the bytes their processes hold already.
    n : another basis size than the settings', for finding one that fits.
    """
    n = settings.components(table) if n is None else n
    d = table.n_targets
    problem = Problem(table, settings.kernel_template(), n, settings.tol, settings.seed, np.zeros(d), np.ones(d))
    steps: list[Step] = []
    if _needs_moments(table, settings):
        moments = Moments(table.n_features, 0 if table.classes is not None else d)
        steps.append(step_of("column statistics", moments, table.n_rows, kernel_columns=0))
    steps += settings.selection_rule(has_targets=d > 0).steps(problem)
    final = NormalEquations(unfilled_basis(problem, n), problem.centre)
    # The sums, their whitened copy, its eigenvectors and LAPACK's workspace (evd takes 2 n^2 beside the matrix).
    algebra = 8 * n * (8 * n + 4 * d)
    steps.append(step_of("final sweep", final, table.n_rows, kernel_columns=n, held_bytes=16 * n * n))
    steps.append(Step("solve", "driver", 0, 1, 0.0, 0, 0, 0, 0, algebra))
    disk = final.state_bytes() * 2 + n * table.n_features * 8
    return make_plan(steps, TableShape.of(table), machine, disk_bytes=disk)


def fit_ridge(
    table: Table,
    settings: RidgeSettings,
    session: Session,
    *,
    whole: Table | None = None,
    memory_limit: int | None = None,
    estimator: str = "ridge",
    targets_are_2d: bool = False,
    driver_bytes: int | None = None,
) -> RidgeModel:
    """Fit a kernel ridge model.

    Parameters
    ----------
    table : rows of the fit, with targets.
    settings : what is asked.
    session : where and with what checkpoints it runs.
    whole : the table that `table` is a slice of; its other rows serve for the held-out picture.
    memory_limit : bytes; a plan beyond it is refused before anything is read.

    Raises
    ------
    ResourceLimitError
        The plan exceeds the limit.
    SingleClassError
        A classifier was given one class.
    DataError, StoreError, NumericalError
        See `streamkernel.errors`.
    """
    if table.n_targets == 0:
        raise ParameterError("the table has no targets; ingest it with --target, or give y")
    if estimator == "ridge" and table.classes is not None:
        raise ParameterError("the target holds class labels; use the estimator ridge-classifier")
    n = settings.components(table)
    executor = session.executor
    workers = executor.n_workers if executor.name == "cluster" else 0
    machine = Machine(workers, executor.threads_per_worker, max(BASE_BYTES, (driver_bytes or 0) + _COMPILING_BYTES))
    plan = plan_ridge(table, settings, machine, n)
    check_memory(plan, memory_limit, lambda size: plan_ridge(table, settings, machine, size), n)
    session.progress.note(
        f"{plan.sweeps} sweeps over {table.n_rows} rows, {format_bytes(plan.memory_bytes)} of memory at most"
    )
    if table.classes is not None and len(table.classes) < 2:
        raise SingleClassError(
            f"y holds one class only, {table.classes.tolist()[0]!r}; a classifier needs rows of at least two classes"
        )
    began = time.perf_counter()
    # One BLAS thread on the driver too, held throughout: equal bits on any number of cores.
    with single_threaded_blas(), PeakMeter() as meter:
        fitted = _Fit(table, settings, session, n)
        fitted.run()
        check = _check_rows(fitted, whole)
    peak = meter.peak + executor.peak_bytes()
    config = fitted.config(estimator, targets_are_2d)
    arrays = fitted.arrays()
    if check is not None:
        config["check"] = {"kind": check[0], "rows": len(check[1])}
        arrays["check_true"], arrays["check_predicted"] = check[1], check[2]
    config["volatile"] = ["run", "volatile", "software"]
    config["software"] = _software()
    config["run"] = {
        "seconds": time.perf_counter() - began,
        "sweeps": [record.to_config() for record in session.records],
        "planned_memory_bytes": plan.memory_bytes,
        "peak_memory_bytes": peak,
        "executor": {"name": executor.name, "workers": workers, "threads": executor.threads_per_worker},
    }
    return RidgeModel(config, arrays)


def _needs_moments(table: Table, settings: RidgeSettings) -> bool:
    return table.statistics is None and (settings.scale == "standard" or table.classes is None)


class _Fit:
    """The state of one fit, step by step."""

    def __init__(self, table: Table, settings: RidgeSettings, session: Session, n: int) -> None:
        self.table = table
        self.settings = settings
        self.session = session
        self.n = n
        self.scaler: Scaler | None = None
        self.lengthscale: LengthscaleChoice | None = None
        self.selection: Selection
        self.system: RidgeSystem
        self.solution: RidgeSolution

    def run(self) -> None:
        statistics = self._statistics()
        self.scaler = _scaler(statistics, self.settings, self.table)
        self.table = self.table.with_scaler(self.scaler)
        kernel = self.settings.kernel_template()
        rule = self.settings.selection_rule(has_targets=self.table.n_targets > 0)
        cache = RowCache(self.table, self.session)
        sampled = self._sample_rows()
        draft = Problem(self.table, kernel, self.n, self.settings.tol, self.settings.seed)
        cache.fetch(np.concatenate([sampled, rule.prefetch(draft)]))
        sample = cache.get(sampled)
        self.targets = self._targets(statistics, sample)
        if not self.settings.fit_intercept:
            # The basis then has the mean to explain too.
            self.targets = _Targets(np.zeros_like(self.targets.centre), self.targets.scale)
        if self.settings.searches_lengthscale:
            self.lengthscale = choose_lengthscale(
                sample,
                kernel,
                search=self.settings.lengthscale == "auto",
                intercept=self.settings.fit_intercept,
                scale=self.targets.scale,
            )
            kernel = kernel.with_lengthscale(self.lengthscale.value)
            self.session.progress.note(f"lengthscale {self.lengthscale.value:.6g}")
        problem = Problem(
            self.table,
            kernel,
            self.n,
            self.settings.tol,
            self.settings.seed,
            self.targets.centre,
            self.targets.scale,
        )
        self.kernel = kernel
        self.selection = rule.select(problem, self.session, cache)
        self._warn_of_rank()
        del cache, sample
        self.sums = self.session.sweep(
            NormalEquations.of(self.selection.basis, self.targets.centre, self.table.n_rows),
            self.table,
            "final sweep",
        )
        self.system = RidgeSystem(
            self.selection.basis,
            self.sums,
            intercept=self.settings.fit_intercept,
            scale=None if self.table.classes is not None else self.targets.scale**2,
        )
        alpha = self.system.choose_alpha() if self.settings.alpha == "gcv" else float(self.settings.alpha)
        self.solution = self.system.solve(alpha)

    def _statistics(self) -> TableStatistics | None:
        table = self.table
        if not _needs_moments(table, self.settings):
            return table.statistics
        classes = table.classes is not None
        plain = table.without_targets() if classes else table
        return self.session.sweep(Moments(table.n_features, plain.n_targets), plain, "column statistics")

    def _sample_rows(self) -> NDArray[np.int64]:
        """Rows for the lengthscale, and for the spread of class indicators; in random order."""
        wanted = 0
        if self.settings.searches_lengthscale:
            wanted = _SAMPLE_ROWS[self.settings.lengthscale]
        elif self.table.classes is not None:
            wanted = _SAMPLE_ROWS["median"]
        m = self.table.n_rows
        picked = stream_generator(self.settings.seed, _SAMPLE_STREAM).choice(m, min(wanted, m), replace=False)
        return self.table.start + picked.astype(np.int64)

    def _targets(self, statistics: TableStatistics | None, sample: Sample) -> _Targets:
        d = self.table.n_targets
        if self.table.classes is not None:
            # Indicators have common units; the sums hold their exact means.
            return _Targets(sample.Y.mean(axis=0), np.ones(d))
        assert statistics is not None
        assert statistics.y is not None
        spread = np.where(statistics.y.std > 0.0, statistics.y.std, 1.0)
        return _Targets(np.array(statistics.y.mean, dtype=np.float64), np.array(spread, dtype=np.float64))

    def _warn_of_rank(self) -> None:
        found, ended = len(self.selection.basis), self.selection.ended
        if ended != "rank" and found == self.n:
            return
        if ended == "tolerance":
            return
        if self.settings.alpha != "gcv" and float(self.settings.alpha) == 0.0:
            raise SingularKernelError(
                f"alpha = 0 and the kernel matrix is singular: only {found} of {self.n} basis functions are "
                "independent (are there duplicate rows?); give alpha > 0 or 'gcv'"
            )
        warnings.warn(
            f"only {found} of {self.n} basis functions are linearly independent; the others were left out "
            "(duplicate rows, or a lengthscale that is large for the data)",
            StreamKernelWarning,
            stacklevel=4,
        )

    # --- what is kept ------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        basis, sums, path = self.selection.basis, self.sums, self.system.path
        alphas = path.grid()
        scale = None if self.table.classes is not None else self.targets.scale**2
        return {
            "components": basis.points,
            "component_indices": basis.rows,
            "dual_coef": self.solution.coefficients,
            "intercept": self.solution.intercept,
            "sum_H": sums.H,
            "sum_g": sums.g,
            "sum_YY": sums.YY,
            "sum_G1": sums.G1,
            "sum_Y1": sums.Y1,
            "centre": sums.centre,
            "residual_path": self.system.residual_path,
            "gains": self.selection.gains,
            "gcv_alphas": alphas,
            "gcv_scores": np.array([path.gcv(float(alpha), scale) for alpha in alphas]),
            "gcv_effective_df": np.array([path.effective_df(float(alpha)) for alpha in alphas]),
        }

    def config(self, estimator: str, targets_are_2d: bool) -> dict[str, Any]:
        table, solution = self.table, self.solution
        lengthscale = getattr(self.kernel, "lengthscale", None)
        classes = table.classes
        return {
            "estimator": estimator,
            "settings": self.settings.to_config(),
            "kernel": self.kernel.to_config(),
            "lengthscale": list(lengthscale) if isinstance(lengthscale, tuple) else lengthscale,
            "lengthscale_choice": None if self.lengthscale is None else self.lengthscale.to_config(),
            "alpha": solution.alpha,
            "scaler": None if self.scaler is None else self.scaler.to_config(),
            "columns": list(table.columns),
            "target_names": list(table.target_names),
            "classes": None if classes is None else classes.tolist(),
            "targets_are_2d": targets_are_2d,
            "target_scale": self.targets.scale.tolist(),
            "dtype": str(table.dtype),
            "rows": {"start": table.start, "stop": table.stop, "count": table.n_rows},
            "table_fingerprint": table.fingerprint,
            "requested_basis": self.n,
            "basis_size": len(self.selection.basis),
            "rule": self.settings.selection_rule(has_targets=table.n_targets > 0).name,
            "ended": self.selection.ended,
            "rounds": [record.to_config() for record in self.selection.rounds],
            "sweep_count": len(self.session.records),
            "totals": {"rows": self.sums.count, "weight": self.sums.weight, "trace": self.sums.trace},
            "certificate": {
                "trace": self.sums.trace,
                "residual_trace": self.system.residual_trace,
                "relative_residual_trace": self.system.residual_trace / self.sums.trace if self.sums.trace else 0.0,
            },
            "solution": {
                "gcv": solution.gcv,
                "effective_df": solution.effective_df,
                "training_rmse": np.sqrt(solution.residual_square / max(self.sums.count, 1)).tolist(),
            },
        }


def _scaler(statistics: TableStatistics | None, settings: RidgeSettings, table: Table) -> Scaler | None:
    if settings.scale == "none":
        return None
    assert statistics is not None
    std = statistics.X.std
    # Rounding leaves a constant column a deviation of some units in its last place.
    constant = std <= 1e-12 * np.maximum(np.abs(statistics.X.mean), np.finfo(np.float64).tiny)
    if constant.any():
        names = [table.columns[index] for index in np.flatnonzero(constant)]
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        warnings.warn(
            f"{len(names)} of {len(std)} columns are constant and carry nothing: {shown}",
            StreamKernelWarning,
            stacklevel=5,
        )
    return Scaler(statistics.X.mean, np.where(constant, 1.0, std))


def _check_rows(fitted: _Fit, whole: Table | None) -> tuple[str, NDArray[np.float64], NDArray[np.float64]] | None:
    """True and predicted targets of some rows for the report: held out where there are any, else of the fit."""
    table = fitted.table
    kind, lo, hi = "training", table.start, table.stop
    if whole is not None:
        before, after = (whole.start, table.start), (table.stop, whole.stop)
        held = max((before, after), key=lambda run: run[1] - run[0])
        if held[1] > held[0]:
            kind, lo, hi = "held-out", *held
    source = table if kind == "training" or whole is None else whole.with_scaler(fitted.scaler)
    predictions = RidgeModel(
        {"kernel": fitted.kernel.to_config()},
        {
            "components": fitted.selection.basis.points,
            "component_indices": fitted.selection.basis.rows,
            "dual_coef": fitted.solution.coefficients,
            "intercept": fitted.solution.intercept,
        },
    ).predictions()
    # Some runs of neighbouring rows, spread evenly: a few chunks are read, not all of them.
    length = min(hi - lo, _CHECK_ROWS)
    runs = min(_CHECK_RUNS, length)
    size = length // runs
    starts = np.linspace(lo, hi - size, runs).astype(np.int64)
    blocks = [source.read(int(start), int(start) + size) for start in starts]
    truth = np.concatenate([block.Y for block in blocks if block.Y is not None])
    predicted = np.concatenate([predictions.values(block.X) for block in blocks])
    return kind, truth, predicted


def _cpu() -> str:
    """Model of the processor, where the system tells."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _software() -> dict[str, str]:
    """Versions and machine on which the bits were made."""
    names = ("streamkernel", "numpy", "scipy", "numba", "zarr", "dask")
    libraries = {library["filepath"].rpartition("/")[2]: library for library in threadpool_info()}
    blas = [
        f"{library.get('internal_api')} {library.get('version')} {library.get('architecture', '')}".strip()
        for _, library in sorted(libraries.items())
        if library["user_api"] == "blas"
    ]
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()} {_cpu()}".strip(),
        "blas": ", ".join(sorted(set(blas))),
        **{name: version(name) for name in names},
    }
