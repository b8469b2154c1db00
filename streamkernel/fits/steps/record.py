"""The fields and arrays that the fits of all kinds write: basis, rows, targets, software, and the run."""

from __future__ import annotations

import contextlib
import platform
from functools import cache
from importlib.metadata import version

import numpy as np
from threadpoolctl import threadpool_info

from streamkernel.basis import Basis
from streamkernel.engine import Plan, Session
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.kernels import Precomputed, free_parts
from streamkernel.matrix_rows import at_own_columns
from streamkernel.metric import MetricScaler, mapped_names
from streamkernel.models.tuned import TuningRecord
from streamkernel.records import Executor, Rows, Run, ScalerRecord
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import ClippedScaler, RankScaler, RowScaler, Scaler, SparseScaler
from streamkernel.table.class_weights import without_class_weights
from streamkernel.tuning import Tuning
from streamkernel.type_aliases import AnyArray, Fields, Float


def basis_fields(chosen: Chosen, settings: BasisSettings, n: int) -> Fields:
    """Fields of a chosen basis: those that depend only on the rows and the settings, and the software.

    Parameters
    ----------
    n : basis size that was asked for.
    """
    table, selection = chosen.table, chosen.selection
    return {
        "settings": settings.to_record(),
        "kernel": (basis_of_model(chosen).kernel if table.of_matrix else chosen.kernel).to_config(),
        "lengthscale": getattr(chosen.kernel, "lengthscale", None),
        "lengthscale_choice": chosen.lengthscale,
        "metric_choice": chosen.metric,
        "scaler": scaler_record(chosen.scaler),
        "rows": Rows(start=table.start, stop=table.stop, count=table.n_rows),
        "table_fingerprint": without_class_weights(table).fingerprint,
        "requested_basis": n,
        "basis_size": len(selection.basis),
        "rule": settings.rule_for(table).name,
        "ended": selection.ended,
        "rounds": tuple(selection.rounds),
        "volatile": ("run", "volatile", "software"),
        "software": software_record(),
    }


def fitted_fields(estimator: str, chosen: Chosen, settings: BasisSettings, n: int, sweeps: int) -> Fields:
    """Fields of every model: `basis_fields`, the estimator, the columns, and the number of passes over the rows."""
    return {
        "estimator": estimator,
        **basis_fields(chosen, settings, n),
        "columns": tuple(chosen.table.columns),
        "named_columns": chosen.table.named,
        **({} if chosen.table.weight_column is None else {"weight_column": chosen.table.weight_column}),
        **({} if chosen.table.schema is None else {"table_schema": chosen.table.schema}),
        "sweep_count": sweeps,
    }


def scaler_record(scaler: RowScaler | None) -> ScalerRecord | None:
    """The numbers of a scaler of columns, as they are stored; `scaler_arrays` has the others."""
    columns = scaler.columns if isinstance(scaler, MetricScaler) else scaler
    if columns is None:
        return None
    if isinstance(columns, SparseScaler):
        return ScalerRecord(mean=(), scale=tuple(columns.scale.tolist()), kind="sparse")
    mean = tuple(columns.mean.tolist())
    if isinstance(columns, RankScaler):
        return ScalerRecord(mean=mean, scale=(), kind="rank")
    if isinstance(columns, ClippedScaler):
        return ScalerRecord(
            mean=mean,
            scale=tuple(columns.scale.tolist()),
            kind="robust",
            lower=tuple(columns.lower.tolist()),
            upper=tuple(columns.upper.tolist()),
        )
    assert isinstance(columns, Scaler)
    return ScalerRecord(mean=mean, scale=tuple(columns.scale.tolist()))


def scaler_arrays(scaler: RowScaler | None, suffix: str = "") -> dict[str, AnyArray]:
    """The arrays of a scaler, by name: its metric, and the knots of a rank scaler."""
    arrays: dict[str, AnyArray] = {}
    if isinstance(scaler, MetricScaler):
        arrays, scaler = {f"metric{suffix}": scaler.metric}, scaler.columns
    if isinstance(scaler, RankScaler):
        arrays |= {
            f"scaler_knots{suffix}": scaler.knots,
            f"scaler_values{suffix}": scaler.values,
            f"scaler_counts{suffix}": scaler.counts,
        }
    return arrays


def basis_arrays(chosen: Chosen, residual_path: Float) -> dict[str, AnyArray]:
    """The basis with the arrays of its scaler, and the path of its selection: score and residual of each pick."""
    selection = chosen.selection
    followed = {
        "gain_parts": selection.gain_parts,
        "predicted_gains": selection.predicted_gains,
        "selection_traces": selection.traces,
        "points": chosen.points_of(selection.basis),
        **scaler_arrays(chosen.scaler),
    }
    return {
        "components": basis_of_model(chosen).points,
        "component_indices": selection.basis.rows,
        "gains": selection.gains,
        "residual_path": residual_path,
        **{name: values for name, values in followed.items() if values is not None},
    }


def basis_of_model(chosen: Chosen) -> Basis:
    """The basis as a model has it: that of the fit; of a kernel matrix with its own columns alone."""
    basis = chosen.selection.basis
    if not chosen.table.of_matrix:
        return basis
    return Basis(Precomputed(len(basis)), at_own_columns(basis.points), basis.rows)


def run_record(session: Session, plan: Plan, seconds: float, peak_bytes: int) -> Run:
    """Times, memory and executor of a run; not part of the digest."""
    executor = session.executor
    return Run(
        seconds=seconds,
        sweeps=tuple(session.records),
        planned_memory_bytes=plan.memory_bytes,
        peak_memory_bytes=peak_bytes,
        executor=Executor(
            name=executor.name,
            workers=executor.n_workers,
            threads=executor.threads_per_worker,
        ),
    )


_PACKAGES = ("streamkernel", "numpy", "scipy", "numba", "zarr", "dask")


def software_record() -> dict[str, str]:
    """Versions of Python, the packages and the BLAS; system and processor."""
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()} {_cpu()}".strip(),
        "blas": _blas(),
        **_versions(),
    }


@cache  # looks through every library of the process; NumPy and SciPy load theirs with their first import
def _blas() -> str:
    libraries = {library["filepath"].rpartition("/")[2]: library for library in threadpool_info()}
    blas = {
        f"{library.get('internal_api')} {library.get('version')} {library.get('architecture', '')}".strip()
        for library in libraries.values()
        if library["user_api"] == "blas"
    }
    return ", ".join(sorted(blas))


@cache  # reads and parses a file for each package, an eighth of a fit of a few rows
def _versions() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES}


@cache
def _cpu() -> str:
    """Model of the processor, where the system reports it."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def tuning_record(chosen: Chosen) -> TuningRecord | None:
    """The record of the search for hyper-parameters; None without a search."""
    tuning = chosen.tuning
    if tuning is None:
        return None
    names = _lengthscale_names(chosen) if tuning.points[0].lengthscales else []
    noise: dict[str, float] = {} if tuning.noise is None else {"noise": tuning.noise}
    return TuningRecord(
        objective=tuning.objective,
        parameters=(*names, "signal variance", *(["noise variance"] if noise else [])),
        best=_best(tuning),
        sample_rows=tuning.rows,
        moved=tuple(tuning.moved),
        signal=tuning.signal,
        **noise,
        value=tuning.value,
    )


def _lengthscale_names(chosen: Chosen) -> list[str]:
    """Names of the lengthscales that were searched for: by column, by part of the kernel, or by both."""
    columns, found = _kernel_columns(chosen), []
    parts = free_parts(chosen.kernel, len(columns))
    for number, part in enumerate(parts, 1):
        of_part = f" of {part.kernel.name} {number}" if len(parts) > 1 else ""
        own = isinstance(part.kernel.lengthscale, tuple)
        of_columns = [f" of {columns[k]}" for k in part.columns] if own and len(part.columns) > 1 else [""]
        found += [f"lengthscale{of_column}{of_part}" for of_column in of_columns]
    return found


def _kernel_columns(chosen: Chosen) -> list[str]:
    """Names of the columns that the kernel sees: one lengthscale belongs to each."""
    scaler = chosen.scaler
    return mapped_names(chosen.table.columns, scaler.metric if isinstance(scaler, MetricScaler) else None)


def tuning_arrays(chosen: Chosen) -> dict[str, AnyArray]:
    """Every point that was evaluated."""
    points = () if chosen.tuning is None else chosen.tuning.points
    if not points:
        return {}
    logs = [
        np.log([*point.lengthscales, point.signal, *([] if point.noise is None else [point.noise])]) for point in points
    ]
    return {
        "tuning_parameters": np.array(logs),
        "tuning_values": np.array([point.value for point in points]),
        "tuning_stage": np.array([int(point.of_all_rows) for point in points], dtype=np.int64),
    }


def _best(tuning: Tuning) -> int:
    """Index of the point that the model uses: the best of the last stage."""
    full = any(point.of_all_rows for point in tuning.points)
    values = [point.value if (point.of_all_rows) == full else -np.inf for point in tuning.points]
    return int(np.argmax(values))
