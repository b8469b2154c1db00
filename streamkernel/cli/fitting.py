"""From the options of `fit` and `plan` to what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamkernel.cli.machine import Place, place_of, total_memory
from streamkernel.cli.options import cut
from streamkernel.engine import Machine, Plan, check_memory
from streamkernel.estimators import RidgeSettings, plan_ridge
from streamkernel.estimators.base import parse_bytes
from streamkernel.table import Table, open_table

__all__ = ["Asked", "asked"]


@dataclass(frozen=True)
class Asked:
    """What a user asked for, checked: settings, rows, place, and the plan that fits the limit."""

    settings: RidgeSettings
    estimator: str
    whole: Table
    table: Table
    place: Place
    limit: int
    plan: Plan

    @property
    def worker_bytes(self) -> int | None:
        """Memory of each local worker, above which Dask stops it: an even share of what the driver leaves."""
        if not self.place.workers:
            return None
        return max(self.plan.worker_bytes, (self.limit - self.plan.driver_bytes) // self.place.workers)


def asked(store: str, options: dict[str, Any]) -> Asked:
    """Check the options, open the table, make the plan; nothing is read yet but metadata.

    Without ``--workers`` the local cluster has a worker a core, or fewer where more would break the memory limit.
    """
    rule_options = {} if options["pool"] is None else {"pool": options["pool"]}
    settings = RidgeSettings(
        n_components=options["basis"],
        kernel=options["kernel"],
        lengthscale=options["lengthscale"],
        gamma=options["gamma"],
        degree=options["degree"],
        coef0=options["coef0"],
        alpha=options["alpha"],
        tol=options["tol"],
        rule=options["rule"],
        objective=options["objective"],
        rule_options=rule_options,
        scale=options["scale"],
        fit_intercept=options["intercept"],
        seed=options["seed"],
    )
    place = place_of(options["scheduler"], options["workers"])
    limit = parse_bytes(options["memory"], "--memory") or total_memory()
    whole = open_table(store, classify=options["estimator"] == "ridge-classifier")
    table = cut(whole, options["rows"])
    n = settings.components(table)

    def plan_on(machine: Machine, size: int) -> Plan:
        return plan_ridge(table, settings, machine, size)

    if place.scheduler == "local" and options["workers"] is None:
        while place.workers > 1 and plan_on(place.machine(), n).memory_bytes > limit:
            place = Place(place.scheduler, place.workers - 1)
    plan = plan_on(place.machine(), n)
    check_memory(plan, limit, lambda size: plan_on(place.machine(), size), n)
    return Asked(settings, options["estimator"], whole, table, place, limit, plan)
