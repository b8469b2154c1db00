"""The options of `fit` and `plan`, turned into settings, table, place and plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamkernel.cli.execution import ExecutionTarget, execution_target, place_within, worker_share
from streamkernel.cli.options import Resources, cut
from streamkernel.cli.rule_options import NAMED, rule_options
from streamkernel.engine import Machine, MemoryLimits, Plan, check_memory
from streamkernel.errors import ParameterError
from streamkernel.kernels.names import KERNEL_NAMES, parameters_of
from streamkernel.kinds import KINDS, OPTION_SETTINGS, Kind, settings_of, with_stores_opened
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table, open_table, with_weights_of
from streamkernel.type_aliases import Fields, Unchecked


@dataclass(frozen=True)
class FitRequest:
    """A checked request: settings, rows, place, and a plan within the limits.

    Attributes
    ----------
    limits : limits of the processes, as far as they are known before the start.
    plan : plan of the run; for a remote cluster that of a single worker, until the workers are known.
    plan_on : function that plans for another machine.
    """

    settings: Unchecked
    estimator: str
    whole: Table
    table: Table
    place: ExecutionTarget
    limits: MemoryLimits
    plan: Plan
    plan_on: Callable[[Machine], Plan]

    @property
    def plan_of_run(self) -> Plan | None:
        """The plan, if it is that of the run, so that the fit need not make another; None for a remote cluster."""
        return None if self.place.remote else self.plan

    @property
    def worker_bytes(self) -> int | None:
        """Memory above which Dask stops a local worker: an equal share of the limit less the driver's part."""
        return worker_share(self.place, self.limits, self.plan)


_OF_THE_RUN = {"estimator", "rows", "weight", *NAMED}


def settings_given(options: Fields) -> Fields:
    """Settings by name; None where an option was not given.

    Raises
    ------
    ParameterError
        The kernel does not have one of the options.
    """
    kernel = options.get("kernel") or BasisSettings.kernel
    for name in ("gamma", "degree", "coef0"):
        if options.get(name) is not None and kernel in KERNEL_NAMES and name not in parameters_of(kernel):
            takers = [other for other in KERNEL_NAMES if name in parameters_of(other)]
            raise ParameterError(
                f"--{name} means nothing to the kernel {kernel}, it is of {', '.join(takers)}; leave it out, or choose "
                "one of these by --kernel"
            )
    given = {OPTION_SETTINGS.get(name, name): value for name, value in options.items() if name not in _OF_THE_RUN}
    return {**given, "rule_options": rule_options(options)}


def fit_request(
    store: str,
    options: Fields,
    resources: Resources,
    settings: BasisSettings,
    plan_of: Callable[[Table, Any, Machine, int], Plan],
    *,
    estimator: str = "",
    classify: bool = False,
    multilabel: bool = False,
    driver_bytes: int | None = None,
) -> FitRequest:
    """Open the table and make the plan; only metadata, and row weights where there are some, are read.

    `driver_bytes` is that of `ExecutionTarget.machine`.

    Without ``--workers`` the local cluster has one worker per core, or fewer where more would exceed the memory limit.
    """
    place = execution_target(resources)
    limits = place.limits()
    opened = open_table(store, classify=classify, multilabel=multilabel, sparse=True)
    whole = with_weights_of(opened, options.get("weight"))
    table = cut(whole, options["rows"])
    settings = settings.for_table(table)
    n = settings.components(table)

    def plan_on(machine: Machine, size: int) -> Plan:
        return plan_of(table, settings, machine, size)

    place = place_within(place, resources, limits, lambda machine: [plan_on(machine, n)], driver_bytes)
    plan = plan_on(place.machine(driver_bytes), n)
    check_memory(plan, limits, lambda size: plan_on(place.machine(driver_bytes), size), n)
    return FitRequest(settings, estimator, whole, table, place, limits, plan, lambda machine: plan_on(machine, n))


def planned_request(
    store: str, options: Fields, resources: Resources, driver_bytes: int | None = None
) -> tuple[Kind, FitRequest]:
    """`fit_request` for the commands `fit` and `plan`, where `--estimator` determines the settings."""
    kind = KINDS[options["estimator"]]
    given = with_stores_opened(kind, settings_given(options))
    settings = settings_of(kind, given)
    request = fit_request(
        store,
        options,
        resources,
        settings,
        kind.plan,
        estimator=kind.name,
        classify=kind.classify,
        multilabel=kind.multilabel,
        driver_bytes=driver_bytes,
    )
    kind.check(request.table, kind.name)
    return kind, request
