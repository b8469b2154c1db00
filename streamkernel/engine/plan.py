"""The plan of a fit, made before any work: pure arithmetic on shapes.

Memory of a task: three times a chunk (as stored, as decoded, as cut: Zarr's own cost, docs/reliability.md; during a
fetch from an object store it is held twice as stored, and not decoded yet), the rows of the block, those that are read
ahead (of one chunk, or of one block), its scratch, and the state. Memory of a thread: the loops' copy of some rows.
Memory of a process: one task for each thread, or for each span if there are fewer; the states that wait in the tree;
the basis points as packed for the loops (`kernels.packed_bytes`), once for each packing of the step; rows beside them;
names of columns; rows that an earlier step fetched and the fit keeps; the interpreter with its libraries.

States of gathered rows are parts of one sample of S bytes. A process that joins them holds 2 S: the parts and the
joined sample. All W workers together hold at most 3 S - S / W: the parts (S), copies of those parts that the joining
worker fetches from the others (S - S / W), and the joined sample (S). The driver receives parts without a further copy,
and joins them: 2 S.

The promise is the sum over all processes at the costliest step: between two steps workers hold no states.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from streamkernel.engine._branches import branch_leaves
from streamkernel.engine._read_ahead import blocks_ahead
from streamkernel.engine.layout import Parts, block_rows, block_rows_of, leaf_count, span_rows, worth_sending
from streamkernel.engine.threads import available_cpus
from streamkernel.kernels import Composite, Kernel, Precomputed, packed_bytes, packing_bytes, workspace_bytes
from streamkernel.metric import MetricScaler
from streamkernel.reductions import Reduction, RowMap
from streamkernel.reductions.contract import AnyReduction
from streamkernel.table import Table
from streamkernel.table.rows import NumpyRows
from streamkernel.type_aliases import Fields

# Resident bytes of a process before it has work, as measured (docs/guide.md, "Memory"): interpreter and libraries; the
# compiler's memory, which it does not return, if Numba's cache was cold; connections. A worker of a remote cluster has
# loaded the whole package (deploy/dask.yaml) and begins with a cold cache in each new container. A worker of the local
# cluster loads only the modules of its tasks.
BASE_BYTES = 480 << 20  # a driver's
WORKER_BYTES = 400 << 20
LOCAL_WORKER_BYTES = 340 << 20
COMPILING_BYTES = 165 << 20  # the compiler's part, which a process that has just begun does not hold yet
_NAME_BYTES = 128  # two short strings, and a place for each in a tuple and in the list that it is made of
_SPARSE_COLUMN_BYTES = 64  # scale, random number of keys, and starts of the lists of some prepared kernels
SLACK = 1.3  # bytes that the allocator holds for each byte in use; most where threads wait for each other


@dataclass(frozen=True)
class TableShape:
    """The numbers of a table that the plan needs."""

    rows: int
    features: int  # numbers of a row as read: the columns; of sparse rows those in pairs
    width: int  # columns of a block's X, which a metric makes of the features
    targets: int
    itemsize: int
    chunk_rows: int
    in_memory: bool
    chunks: int | None = field(default=None, compare=False)  # number of chunks that spans are made of, if known
    map_bytes: int = 0  # of the metric, or of numbers a sparse column, in every process that maps rows
    weights: int = 0  # 1 for row weights
    names: int = 0  # of columns

    @classmethod
    def of(cls, table: Table) -> TableShape:
        return cls(
            table.n_rows,
            table.stored_width,
            table.width,
            table.n_targets,
            table.dtype.itemsize,
            table.chunk_rows,
            table.in_memory and not table.sparse and not table.of_matrix,  # chunks of these are made
            len(table.features.cuts(table.start, table.stop)) - 1,
            _map_bytes(table),
            int(table.weights is not None),
            table.n_features,
        )

    def sample(self, rows: int) -> TableShape:
        """The shape of a sample of `rows` rows, in memory."""
        chunk = NumpyRows.CHUNK_ROWS
        return replace(self, rows=rows, chunk_rows=chunk, in_memory=True, chunks=max(1, -(-rows // chunk)))

    @property
    def row_bytes(self) -> int:
        return self.features * self.itemsize + 8 * (self.targets + self.weights)

    @property
    def cut_bytes(self) -> int:
        """Bytes of a row in a block: as read, and as float64."""
        return self.row_bytes + 8 * max(self.features, self.width)

    @property
    def block_row_bytes(self) -> int:
        """Bytes of a row in a block, without scratch: as read (rows in memory are not copied), and scaled."""
        values = (0 if self.in_memory else self.features) + self.width
        return values * self.itemsize + 8 * (self.targets + self.weights)

    @property
    def chunk_bytes(self) -> int:
        return min(self.chunk_rows, self.rows) * self.row_bytes


@dataclass(frozen=True)
class Machine:
    """The machine of a run. 0 workers are threads of this process; with workers, the driver uses all its cores too.

    Parameters
    ----------
    driver_base, worker_base : bytes of the process without its work; the defaults are those of remote workers.
    """

    workers: int
    threads: int
    driver_base: int = BASE_BYTES
    worker_base: int = WORKER_BYTES

    @property
    def driver_threads(self) -> int:
        return available_cpus() if self.workers else self.threads


@dataclass(frozen=True)
class SideBySide:
    """Tasks on the driver that do not depend on each other, each with rows and passes of its own.

    Parameters
    ----------
    most : largest number of tasks.
    each_bytes : bytes that each holds beside its pass.
    before_bytes : bytes that the driver holds for all of them before the first one begins, and no longer then.
    """

    most: int = 1
    each_bytes: int = 0
    before_bytes: int = 0

    def count(self, threads: int) -> int:
        """Number of tasks that run at once: each of the threads may wait for as many threads with tasks of its own."""
        return min(self.most, threads**2)


@dataclass(frozen=True)
class Step:
    """One kind of work: a sweep over the table, a pass over a sample in memory, or algebra on the driver.

    The pass over a sample is by the driver's threads ("sample"), or by the workers if there are any ("shared").
    """

    name: str
    where: str  # "sweep", "shared", "sample" or "driver"
    rows: int
    times: int
    flops_per_row: float
    kernel_columns: int
    block_rows: int
    scratch_bytes: int
    state_bytes: int
    held_bytes: int = 0
    remedy: str = ""  # words for a user whose memory is too small for this step
    points: int = 0  # number of basis points that are packed for the kernel's loops
    row_multiple: int = 1
    packings: int = 1  # number of packings: for the sums, for slopes, of the previous basis
    kept_bytes: int = 0  # bytes of its result that the driver holds to the end of the fit
    rows_bytes: int = 0  # rows that the driver holds during and after the tasks: a pool, its scoring rows
    packed_bytes: int = 0  # packed points that are not rows of the table, beside `points`
    spans: int | None = None  # number of spans, the most tasks that run at once; None if not known
    algebra: float = 0.0  # operations of dense algebra on the driver, after each of the `times`
    grows: bool = False  # whether the state of some rows has their share of the bytes
    fixed_bytes: int = 0  # bytes of a growing state that do not grow: of another reduction in the same sweep
    parts: Parts | None = None  # of a sample's sums, which a task of many workers has one of
    usual: Step | None = None  # the step as it is as a rule, where this one is the most that it may be
    beside: SideBySide = SideBySide()  # passes over a sample that run at once
    single: bool = False  # whether most of its products are in float32
    lower_bytes: int = 0  # bytes of an open state that a sealed one does not have (`Reduction.lower_bytes`)

    @property
    def as_a_rule(self) -> Step:
        """The step that times are of; memory is planned for the most."""
        return self.usual or self

    @property
    def flops(self) -> float:
        return self.times * self.rows * self.flops_per_row

    @property
    def each_state_bytes(self) -> int:
        """Bytes that every open state has, of however few rows."""
        return self.fixed_bytes if self.grows else self.state_bytes

    @property
    def each_sealed_bytes(self) -> int:
        """Bytes that every sealed state has, of however few rows."""
        return self.each_state_bytes - self.lower_bytes

    @property
    def sealed_bytes(self) -> int:
        """Bytes of a sealed state of all rows, as it is sent."""
        return self.state_bytes - self.lower_bytes

    @property
    def in_memory(self) -> bool:
        """Whether its rows are a sample."""
        return self.where in ("shared", "sample")

    def on_workers(self, machine: Machine) -> bool:
        """Whether its tasks run on workers."""
        return bool(machine.workers) and self.where in ("sweep", "shared")

    @property
    def leaves(self) -> int:
        """Number of tasks that read rows, as a rule: the spans."""
        if self.spans is not None:
            return self.spans
        return max(1, -(-self.rows // span_rows(self.rows, self.flops_per_row)))


def driver_step(name: str, held_bytes: int, remedy: str = "", algebra: float = 0.0) -> Step:
    """The step of dense algebra on the driver, which reads no rows."""
    return Step(name, "driver", 0, 1, 0.0, 0, 0, 0, 0, held_bytes, remedy, algebra=algebra)


def step_of(
    name: str,
    work: AnyReduction | RowMap,
    table: Table | int,
    *,
    kernel_columns: int,
    sampled: int | None = None,
    points: int | None = None,
    where: str = "sweep",
    times: int = 1,
    held_bytes: int = 0,
    packings: int = 1,
    rows_bytes: int = 0,
    packed_bytes: int = 0,
    algebra: float = 0.0,
) -> Step:
    """The step that runs `work` over a table.

    Parameters
    ----------
    table : the table, or a number of rows, if only operations are asked for.
    kernel_columns : number of kernel entries of a row.
    sampled : number of rows of a sample in memory; None for all rows of the table.
    where : as of `Step`; "shared" becomes "sample" where the work is too little (`Session.shared`).
    points : number of basis points that are packed; None for `kernel_columns`.
    held_bytes : bytes that the driver needs for the algebra on the sums, after the tasks have ended.
    packings : number of packings of the points in memory at the same time.
    rows_bytes, packed_bytes, algebra : fields of `Step`.
    """
    state, multiple = (work.state_bytes(), work.row_multiple) if isinstance(work, Reduction) else (0, 1)
    spans: int | None = None
    if isinstance(table, int):
        rows, cut_bytes = table if sampled is None else sampled, 0
    else:
        shape = TableShape.of(table) if sampled is None else TableShape.of(table).sample(sampled)
        rows, cut_bytes = shape.rows, shape.cut_bytes
        chunks = shape.chunks if isinstance(work, Reduction) else None
        spans = leaf_count(rows, work.flops_per_row(), shape.row_bytes, chunks, shape.chunk_rows)
    divided = work.divided(rows) if where == "shared" and isinstance(work, Reduction) else None
    parts = divided and Parts.of(divided)
    if where == "shared" and not worth_sending(rows * work.flops_per_row()):
        where = "sample"
    # No block has more rows than there are.
    b = min(block_rows_of(work, cut_bytes), max(rows, 1))
    return Step(
        name,
        where,
        rows,
        times,
        work.flops_per_row(),
        kernel_columns,
        b,
        work.scratch_bytes(min(b, max(rows, 1))),
        state,
        held_bytes,
        points=kernel_columns if points is None else points,
        row_multiple=multiple,
        packings=packings,
        rows_bytes=rows_bytes,
        packed_bytes=packed_bytes,
        spans=spans,
        algebra=algebra,
        parts=parts,
        grows=isinstance(work, Reduction) and 0 == work.share_bytes(0.0) < state,
        single=isinstance(work, Reduction) and work.precision.itemsize < 8,
        lower_bytes=work.lower_bytes if isinstance(work, Reduction) else 0,
    )


def outgrown_bytes(step: Step) -> int:
    """Bytes of row blocks that the allocator does not return, if blocks become wider with every sweep (measured).

    A block above 32 MiB is a mapping of its own (glibc's largest threshold), and is returned when it is freed.
    """
    return 5 * min(step.scratch_bytes, 32 << 20)


@dataclass(frozen=True)
class Plan:
    """The promised cost of a fit.

    Attributes
    ----------
    sweeps : passes over the rows.
    bytes_read, flops, kernel_entries : totals of the whole fit.
    task_bytes, worker_bytes, driver_bytes : memory at the costliest step of each.
    memory_bytes : memory of all processes together at their costliest step, which `--memory` limits. It may be less
        than the sum of `driver_bytes` and those of the workers: these may have other costliest steps, and only one
        worker at a time holds all gathered rows.
    disk_bytes : size of the model and its checkpoints on disk.
    table : shape of the table, as its blocks are.
    families : kernel families whose values make an entry of a kernel block: one, or those of a sum or product.
    """

    steps: list[Step]
    machine: Machine
    sweeps: int
    bytes_read: int
    flops: float
    kernel_entries: float
    task_bytes: int
    worker_bytes: int
    driver_bytes: int
    memory_bytes: int
    disk_bytes: int
    table: TableShape
    families: tuple[str, ...] = ("gaussian",)

    def to_config(self) -> Fields:
        return asdict(self)


def make_plan(
    steps: list[Step], table: TableShape, machine: Machine, *, disk_bytes: int, kernel: Kernel | None = None
) -> Plan:
    """Add up the steps.

    Parameters
    ----------
    kernel : kernel that the points are packed for; None for one with a single formula.
    """
    formulas = 1 if kernel is None else kernel.formulas
    sweeps = [step for step in steps if step.where == "sweep"]

    def task(step: Step) -> int:
        of = table.sample(step.rows) if step.in_memory else table
        read = 0 if of.in_memory else 3 * of.chunk_bytes
        most = block_rows(lambda rows: 0, step.row_multiple, table.cut_bytes, step.flops_per_row)
        rows = min(step.block_rows, most)
        block = rows * of.block_row_bytes
        read += _ahead_bytes(of, rows)
        loops = workspace_bytes(table.width) if step.kernel_columns else 0
        # States that grow are counted together, with those that wait.
        return read + block + loops + step.scratch_bytes + step.each_state_bytes

    def waiting(step: Step, threads: int) -> int:
        # Parts that grow: `joining`.
        spans = leaf_count(step.rows, step.flops_per_row) if step.spans is None else step.spans
        return min(spans, (spans - 1).bit_length() + 2 * threads) * step.each_sealed_bytes

    def process(step: Step, threads: int) -> int:
        packed = step.packings * packed_bytes(step.points, table.width, formulas) + step.packed_bytes
        if step.points:
            packed += packing_bytes(table.width)
        if step.where == "sweep":
            packed += table.map_bytes
        tasks = threads if step.spans is None else min(threads, step.spans)
        return tasks * task(step) + waiting(step, threads) + packed

    def joining(step: Step) -> int:
        """Bytes of the parts of a state that grows, and of the sums that are being made of them, in one process."""
        return 2 * step.state_bytes if step.grows else 0

    def side_by_side(step: Step, threads: int) -> int:
        """Bytes of the rows of passes that run at once, and of these passes but for one, which `process` counts."""
        count = step.beside.count(threads)
        passes = (count - 1) * (step.spans or 1) * (step.scratch_bytes + step.state_bytes)
        return max(step.beside.before_bytes, count * step.beside.each_bytes) + passes

    def branches(step: Step) -> int:
        """Bytes of the states that the driver of a cluster holds: of one path of the tree, and those on the way."""
        leaves = max(step.leaves if step.spans is None else step.spans, 1)
        # Of leaves that take a second: shorter ones make larger branches, of which the driver has fewer.
        size = branch_leaves(leaves, step.sealed_bytes, machine.workers * machine.threads, 1.0)
        held = 4 + (-(-leaves // size) - 1).bit_length()
        # The growing parts of all states together are one sample.
        return held * step.each_sealed_bytes + (2 * step.state_bytes if step.grows else 0)

    worker, driver, together = 0, 0, 0
    kept = _NAME_BYTES * table.names  # names of the columns: of the table, and of a sample of it
    for step in steps:
        # The algebra on the sums begins when the tasks have ended.
        held, workers = step.held_bytes + step.rows_bytes, 0
        if step.on_workers(machine):
            # A sample is sent: as bytes, and as the rows made of them.
            sent = 2 * (step.rows * table.row_bytes + step.rows_bytes) if step.in_memory else 0
            each = process(step, machine.threads) + sent
            worker = max(worker, each + joining(step))
            workers = machine.workers * each
            if step.grows:
                workers += 3 * step.state_bytes - step.state_bytes // machine.workers
            # Sums of branches wait for their neighbours, before the algebra begins. Of gathered rows all are one sum.
            sums = 3 * step.each_sealed_bytes + (step.state_bytes if step.grows else 0)
            held = max(held + sums, step.rows_bytes + branches(step)) + sent
        elif step.where != "driver":
            tasks = process(step, machine.driver_threads) + joining(step) + side_by_side(step, machine.driver_threads)
            held = max(held + step.state_bytes, tasks + step.rows_bytes)
        # Steps run in this order. The bytes that earlier steps keep are there while a later one runs.
        held = kept + max(held, step.kept_bytes)
        driver, together = max(driver, held), max(together, held + workers)
        kept += step.kept_bytes
    driver_bytes = machine.driver_base + int(SLACK * driver)
    worker_bytes = machine.worker_base + int(SLACK * worker) if machine.workers else 0
    return Plan(
        steps=steps,
        machine=machine,
        sweeps=sum(step.times for step in sweeps),
        bytes_read=sum(step.times * step.rows for step in sweeps) * table.row_bytes,
        flops=sum(step.flops for step in steps),
        kernel_entries=float(sum(step.times * step.rows * step.kernel_columns for step in steps)),
        task_bytes=max((task(step) for step in sweeps), default=0),
        worker_bytes=worker_bytes,
        driver_bytes=driver_bytes,
        memory_bytes=machine.driver_base + machine.workers * machine.worker_base + int(SLACK * together),
        disk_bytes=disk_bytes,
        table=table,
        families=("gaussian",) if kernel is None else _families(kernel),
    )


def _map_bytes(table: Table) -> int:
    """Bytes of the scaler: of a metric; for sparse rows, of the scales and of the starts of the points' entries."""
    if table.sparse:
        return _SPARSE_COLUMN_BYTES * table.n_features
    return table.scaler.held_bytes if isinstance(table.scaler, MetricScaler) else 0


def _ahead_bytes(table: TableShape, block_rows: int) -> int:
    """Bytes of the rows that a task reads ahead: cut, or views of a chunk."""
    chunk = 0 if table.in_memory else table.features * table.itemsize * table.chunk_rows
    ahead = min(blocks_ahead(table.chunk_rows, chunk, block_rows) * block_rows, table.rows)
    values = ahead * (table.width * table.itemsize + 8 * (table.targets + table.weights))
    return max(values, table.chunk_bytes) if ahead else 0


def _families(kernel: Kernel) -> tuple[str, ...]:
    if isinstance(kernel, Precomputed):
        return ()  # its values are read
    if isinstance(kernel, Composite):
        return tuple(family for part in kernel.parts for family in _families(part))
    # A user's kernel may have no name; rates are measured of ours.
    return (str(getattr(kernel, "name", type(kernel).__name__)),)
