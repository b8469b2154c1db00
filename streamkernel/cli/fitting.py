"""From the options of `fit` and `plan` to what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamkernel.cli.machine import Place, place_of
from streamkernel.cli.options import cut
from streamkernel.cli.rule_options import rule_options
from streamkernel.engine import Machine, MemoryLimits, Plan, check_memory
from streamkernel.estimators import RidgeSettings, plan_ridge
from streamkernel.estimators.base import parse_bytes
from streamkernel.table import Table, open_table

__all__ = ["Asked", "asked"]


@dataclass(frozen=True)
class Asked:
    """What a user asked for, checked: settings, rows, place, and the plan that fits the limits.

    Attributes
    ----------
    memory : bytes that `--memory` allows, None where it was not given.
    limits : what is known of the processes' limits before they are started.
    plan : on a remote cluster, that for a single worker; it is made anew once the workers are known.
    """

    settings: RidgeSettings
    estimator: str
    whole: Table
    table: Table
    place: Place
    memory: int | None
    limits: MemoryLimits
    plan: Plan

    @property
    def worker_bytes(self) -> int | None:
        """Memory of each local worker, above which Dask stops it: an even share of what the driver leaves."""
        if self.place.scheduler != "local" or self.limits.total is None:
            return None
        return max(self.plan.worker_bytes, (self.limits.total - self.plan.driver_bytes) // self.place.workers)


def asked(
    store: str,
    options: dict[str, Any],
    plan_of: Callable[[Table, RidgeSettings, Machine, int], Plan] = plan_ridge,
) -> Asked:
    """Check the options, open the table, make the plan; nothing is read yet but metadata.

    Without ``--workers`` the local cluster has a worker a core, or fewer where more would break the memory limit.
    """
    estimator = options.get("estimator", "ridge")
    settings = RidgeSettings(
        n_components=options["basis"],
        kernel=options["kernel"],
        lengthscale=options["lengthscale"],
        gamma=options["gamma"],
        degree=options["degree"],
        coef0=options["coef0"],
        alpha=options.get("alpha", "gcv"),
        tol=options["tol"],
        rule=options["rule"],
        objective=options["objective"],
        rule_options=rule_options(options),
        scale=options["scale"],
        fit_intercept=options.get("intercept", True),
        seed=options["seed"],
    )
    place = place_of(options["scheduler"], options["workers"])
    memory = parse_bytes(options["memory"], "--memory")
    limits = place.limits(memory)
    whole = open_table(store, classify=estimator == "ridge-classifier")
    table = cut(whole, options["rows"])
    n = settings.components(table)

    def plan_on(machine: Machine, size: int) -> Plan:
        return plan_of(table, settings, machine, size)

    if place.scheduler == "local" and options["workers"] is None:
        while place.workers > 1 and limits.exceeded(plan_on(place.machine(), n)):
            place = Place(place.scheduler, place.workers - 1)
    plan = plan_on(place.machine(), n)
    check_memory(plan, limits, lambda size: plan_on(place.machine(), size), n)
    return Asked(settings, estimator, whole, table, place, memory, limits, plan)
