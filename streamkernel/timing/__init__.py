"""A model of time: how long a planned fit takes on a number of workers, from rates that were measured once."""

from streamkernel.timing.rates import BUILT_IN, Rates, read_rates, usable_rates, write_rates
from streamkernel.timing.scaling import Scaling, plan_seconds, scaled, scaling, worker_counts
from streamkernel.timing.schedule import Slots, SweepCost, sweep_seconds
from streamkernel.timing.time_left import TimeLeft

__all__ = [
    "BUILT_IN",
    "Rates",
    "Scaling",
    "Slots",
    "SweepCost",
    "TimeLeft",
    "plan_seconds",
    "read_rates",
    "scaled",
    "scaling",
    "sweep_seconds",
    "usable_rates",
    "worker_counts",
    "write_rates",
]
