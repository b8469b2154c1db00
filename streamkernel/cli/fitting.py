"""From the options of `fit` and `plan` to what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamkernel.cli.machine import Place, place_of
from streamkernel.cli.options import cut
from streamkernel.cli.rule_options import NAMED, rule_options
from streamkernel.engine import Machine, MemoryLimits, Plan, check_memory
from streamkernel.errors import ParameterError
from streamkernel.estimators.base import parse_bytes
from streamkernel.estimators.kinds import OPTION_SETTINGS, PREDICTORS, Predictor, settings_of
from streamkernel.estimators.named_stores import with_stores_opened
from streamkernel.estimators.settings import BasisSettings
from streamkernel.kernels.names import KERNEL_NAMES, parameters_of
from streamkernel.table import Table, open_table

__all__ = ["Asked", "asked", "asked_to_fit", "settings_given"]


@dataclass(frozen=True)
class Asked:
    """What a user asked for, checked: settings, rows, place, and the plan that fits the limits.

    Attributes
    ----------
    memory : bytes that `--memory` allows, None where it was not given.
    limits : what is known of the processes' limits before they are started.
    plan : on a remote cluster, that for a single worker; it is made anew once the workers are known.
    """

    settings: Any
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


_OF_THE_RUN = {"estimator", "rows", "scheduler", "workers", "memory", "data", *NAMED}


def settings_given(options: dict[str, Any]) -> dict[str, Any]:
    """Settings by name; None where an option was not given.

    Raises
    ------
    ParameterError
        An option is given that the kernel would not look at.
    """
    kernel = options.get("kernel")
    for name in ("gamma", "degree", "coef0"):
        if options.get(name) is not None and kernel in KERNEL_NAMES and name not in parameters_of(kernel):
            takers = [other for other in KERNEL_NAMES if name in parameters_of(other)]
            raise ParameterError(
                f"--{name} means nothing to the kernel {kernel}, it is of {', '.join(takers)}; leave it out, or choose "
                "one of these (--kernel)"
            )
    given = {OPTION_SETTINGS.get(name, name): value for name, value in options.items() if name not in _OF_THE_RUN}
    return {**given, "rule_options": rule_options(options)}


def asked(
    store: str,
    options: dict[str, Any],
    settings: BasisSettings,
    plan_of: Callable[[Table, Any, Machine, int], Plan],
    *,
    estimator: str = "",
    classify: bool = False,
) -> Asked:
    """Open the table, make the plan; nothing is read yet but metadata.

    Without ``--workers`` the local cluster has a worker a core, or fewer where more would break the memory limit.
    """
    place = place_of(options["scheduler"], options["workers"])
    memory = parse_bytes(options["memory"], "--memory")
    limits = place.limits(memory)
    whole = open_table(store, classify=classify)
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


def asked_to_fit(store: str, options: dict[str, Any]) -> tuple[Predictor, Asked]:
    """The same for `fit` and `plan`, whose `--estimator` says which settings there are."""
    kind = PREDICTORS[options["estimator"]]
    given = with_stores_opened(kind, settings_given(options))
    settings = settings_of(kind, given)
    found = asked(store, options, settings, kind.plan, estimator=kind.name, classify=kind.classify)
    kind.check(found.table, kind.name)
    return kind, found
