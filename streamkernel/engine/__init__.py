"""The engine that runs a reduction: plan, layout, tree, threads, cluster, session."""

from streamkernel.engine._branches import branch_leaves, levels_of, sum_tasks, summed_states
from streamkernel.engine._dense_algebra import eigen_flops, factor_flops, tridiagonal_flops
from streamkernel.engine._task_leaves import task_sizes
from streamkernel.engine.executor import Executor, executor_of
from streamkernel.engine.layout import Parts, worth_dividing, worth_sending
from streamkernel.engine.limits import MemoryLimits, check_memory, limits_here, machine_of, memory_limits, total_memory
from streamkernel.engine.peak_memory import PeakMeter, resident_bytes
from streamkernel.engine.plan import (
    LOCAL_WORKER_BYTES,
    Machine,
    Plan,
    SideBySide,
    Step,
    TableShape,
    driver_step,
    make_plan,
    outgrown_bytes,
    step_of,
)
from streamkernel.engine.progress import Progress, ProgressOfPlans, Silent, tell_pass, tell_plan
from streamkernel.engine.session import Checkpointing, Session, layout_of
from streamkernel.engine.threads import ThreadExecutor, available_cpus

__all__ = [
    "LOCAL_WORKER_BYTES",
    "Checkpointing",
    "Executor",
    "Machine",
    "MemoryLimits",
    "Parts",
    "PeakMeter",
    "Plan",
    "Progress",
    "ProgressOfPlans",
    "Session",
    "Silent",
    "SideBySide",
    "Step",
    "TableShape",
    "ThreadExecutor",
    "available_cpus",
    "branch_leaves",
    "check_memory",
    "driver_step",
    "eigen_flops",
    "executor_of",
    "factor_flops",
    "layout_of",
    "levels_of",
    "limits_here",
    "machine_of",
    "make_plan",
    "memory_limits",
    "outgrown_bytes",
    "resident_bytes",
    "step_of",
    "sum_tasks",
    "summed_states",
    "task_sizes",
    "tell_pass",
    "tell_plan",
    "total_memory",
    "tridiagonal_flops",
    "worth_dividing",
    "worth_sending",
]
