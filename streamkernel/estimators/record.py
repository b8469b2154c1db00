"""The fields and arrays of a basis and a run that models, factors and transformers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.engine import Plan, Session
from streamkernel.estimators.choosing import Chosen
from streamkernel.estimators.settings import BasisSettings
from streamkernel.estimators.software import software_record

__all__ = ["basis_arrays", "basis_record", "certificate_of", "model_record", "path_of", "run_record"]

Float = NDArray[np.float64]


def basis_record(chosen: Chosen, settings: BasisSettings, n: int) -> dict[str, Any]:
    """Configuration of a chosen basis: the fields that depend only on the rows and the settings, and the software.

    Parameters
    ----------
    n : basis size that was asked for.
    """
    table, selection = chosen.table, chosen.selection
    lengthscale = getattr(chosen.kernel, "lengthscale", None)
    return {
        "settings": settings.to_config(),
        "kernel": chosen.kernel.to_config(),
        "lengthscale": list(lengthscale) if isinstance(lengthscale, tuple) else lengthscale,
        "lengthscale_choice": None if chosen.lengthscale is None else chosen.lengthscale.to_config(),
        "scaler": None if chosen.scaler is None else chosen.scaler.to_config(),
        "rows": {"start": table.start, "stop": table.stop, "count": table.n_rows},
        "table_fingerprint": table.fingerprint,
        "requested_basis": n,
        "basis_size": len(selection.basis),
        "rule": settings.selection_rule(has_targets=table.n_targets > 0).name,
        "ended": selection.ended,
        "rounds": [record.to_config() for record in selection.rounds],
        "volatile": ["run", "volatile", "software"],
        "software": software_record(),
    }


def model_record(
    chosen: Chosen, settings: BasisSettings, n: int, *, estimator: str, targets_are_2d: bool, sweeps: int
) -> dict[str, Any]:
    """Configuration of every model of targets: `basis_record`, and fields of its rows and targets.

    Parameters
    ----------
    sweeps : passes over the rows.
    """
    table = chosen.table
    return {
        "estimator": estimator,
        **basis_record(chosen, settings, n),
        "columns": list(table.columns),
        "named_columns": table.named,
        "target_names": list(table.target_names),
        "classes": None if table.classes is None else table.classes.tolist(),
        "targets_are_2d": targets_are_2d,
        "target_scale": chosen.scale.tolist(),
        "independent": chosen.independent,
        "dtype": str(table.dtype),
        "sweep_count": sweeps,
    }


def basis_arrays(chosen: Chosen, residual_path: Float) -> dict[str, NDArray[Any]]:
    """The basis, and the path of its selection: score and residual of each pick."""
    selection = chosen.selection
    followed = {
        "gain_parts": selection.gain_parts,
        "predicted_gains": selection.predicted_gains,
        "selection_traces": selection.traces,
    }
    return {
        "components": selection.basis.points,
        "component_indices": selection.basis.rows,
        "gains": selection.gains,
        "residual_path": residual_path,
        **{name: values for name, values in followed.items() if values is not None},
    }


def path_of(trace: float, squares: Float) -> Float:
    """``tr(K - K~_t)`` for t = 0 .. n, (n + 1,): each function reduces the trace by the squares of its column.

    Whitening is triangular in the order of picking, so that one sweep over all n functions gives the values for the
    first t.
    """
    return np.maximum(trace - np.concatenate([[0.0], np.cumsum(squares)]), 0.0)


def certificate_of(trace: float, residual_trace: float) -> dict[str, float]:
    """The certificate, as it is stored and printed."""
    return {
        "trace": trace,
        "residual_trace": residual_trace,
        "relative_residual_trace": residual_trace / trace if trace else 0.0,
    }


def run_record(session: Session, plan: Plan, seconds: float, peak_bytes: int) -> dict[str, Any]:
    """Times, memory and executor of a run; not part of the digest."""
    executor = session.executor
    return {
        "seconds": seconds,
        "sweeps": [record.to_config() for record in session.records],
        "planned_memory_bytes": plan.memory_bytes,
        "peak_memory_bytes": peak_bytes,
        "executor": {
            "name": executor.name,
            "workers": executor.n_workers if executor.name == "cluster" else 0,
            "threads": executor.threads_per_worker,
        },
    }
