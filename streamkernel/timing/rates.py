"""The rates of a machine or of a cluster: what a core, the storage, the network and the scheduler do in a second.

`streamkernel calibrate` measures them once and writes them as a JSON file with a version; plans read it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Annotated

from streamkernel.atomic import json_content, parsed_json, read_file
from streamkernel.errors import ModelFormatError, ParameterError, StoreExistsError, StoreNotFoundError
from streamkernel.outputs import new_file
from streamkernel.records.json_types import AtLeast
from streamkernel.records.record import Record
from streamkernel.wording import call, option

VERSION = 1
PLACE = "STREAMKERNEL_RATES"  # environment variable that names the file

Positive = Annotated[float, AtLeast(1e-30)]


class KernelRate(Record):
    """Seconds of a core for an entry of a kernel block: ``seconds + features * per_feature``."""

    family: str
    dtype: str
    seconds: Positive
    per_feature: Annotated[float, AtLeast(0.0)]


class SumRate(Record):
    """Operations a second of a core in the sums over blocks of this number of kernel columns.

    `dtype` is that of the rows.
    """

    dtype: str
    columns: Annotated[int, AtLeast(1)]
    flops: Positive


class Rates(Record):
    """What a core, the storage, the network and the scheduler do.

    Attributes
    ----------
    version : version of the file's form.
    measured : when and where; None for the built-in rates.
    cores : cores of the machine of the measurement.
    busy : factor by which a core is slower if all of these are at work.
    kernels, sums : rates of a core, by kernel family and dtype, and by number of columns.
    single_sums : as `sums`, of products in float32; none in files of earlier releases, for which `sums` stand.
    read_bytes : bytes of rows a second, read and decoded by one thread with nothing else to do.
    decode_bytes : bytes of rows a second for the part of a read that needs a core.
    check_seconds : seconds of the driver's checks, before and after a sweep, that a stored table has not changed.
    storage_bytes : bytes a second of the storage to all workers together; None where no limit was met.
    memory_bytes : bytes a second of sums of states, and of rows in memory.
    network_bytes : bytes a second from one worker to another.
    task_seconds : seconds of the scheduler for a task.
    sweep_seconds, thread_sweep_seconds : seconds of a sweep beside its tasks: on workers, on threads of the driver.
    algebra_flops : operations a second of the driver's dense algebra.
    """

    version: Annotated[int, AtLeast(1)]
    measured: str | None
    cores: Annotated[int, AtLeast(1)]
    busy: Annotated[float, AtLeast(1.0)]
    kernels: tuple[KernelRate, ...]
    sums: tuple[SumRate, ...]
    single_sums: tuple[SumRate, ...] = ()
    read_bytes: Positive
    decode_bytes: Positive
    storage_bytes: Positive | None
    check_seconds: Annotated[float, AtLeast(0.0)]
    memory_bytes: Positive
    network_bytes: Positive
    task_seconds: Annotated[float, AtLeast(0.0)]
    sweep_seconds: Annotated[float, AtLeast(0.0)]
    thread_sweep_seconds: Annotated[float, AtLeast(0.0)]
    algebra_flops: Positive

    def entry_seconds(self, family: str, dtype: str, features: int) -> float:
        """Seconds of a core for one kernel entry; of a family that was not measured, those of the slowest."""
        of_dtype = [rate for rate in self.kernels if rate.dtype == dtype] or list(self.kernels)
        of_family = [rate for rate in of_dtype if rate.family == family] or of_dtype
        return max(rate.seconds + features * rate.per_feature for rate in of_family)

    def sum_flops(self, dtype: str, columns: int, *, single: bool = False) -> float:
        """Operations a second of sums over `columns` columns: between two numbers of columns by their logarithms.

        Parameters
        ----------
        dtype : that of the rows.
        single : True for products in float32.
        """
        measured = (single and self.single_sums) or self.sums
        rates = sorted((rate.columns, rate.flops) for rate in measured if rate.dtype == dtype)
        if not rates:
            rates = sorted((rate.columns, rate.flops) for rate in measured)
        if columns <= rates[0][0]:
            return rates[0][1]
        for (low, slow), (high, fast) in pairwise(rates):
            if columns <= high:
                share = log(columns / low) / log(high / low)
                return slow + share * (fast - slow)
        return rates[-1][1]


def _slow(seconds: float, per_feature: float) -> tuple[KernelRate, ...]:
    return (
        KernelRate(family="any", dtype="float32", seconds=seconds, per_feature=per_feature),
        KernelRate(family="any", dtype="float64", seconds=2 * seconds, per_feature=2 * per_feature),
    )


def _sums(of_100: float, of_1000: float) -> tuple[SumRate, ...]:
    return tuple(
        SumRate(dtype=dtype, columns=columns, flops=flops)
        for dtype in ("float32", "float64")
        for columns, flops in ((100, of_100), (1000, of_1000))
    )


# Used where nothing was measured: of an ordinary core of 2020 with AVX2, a hard disk, and a network of 1 Gbit/s.
BUILT_IN = Rates(
    version=VERSION,
    measured=None,
    cores=1,
    busy=1.0,
    kernels=_slow(1.2e-9, 5e-11),
    sums=_sums(1e10, 2e10),
    single_sums=_sums(1.5e10, 4e10),
    read_bytes=1.5e8,
    decode_bytes=3e8,
    storage_bytes=None,
    check_seconds=0.1,
    memory_bytes=2e9,
    network_bytes=1e8,
    task_seconds=1e-3,
    sweep_seconds=0.1,
    thread_sweep_seconds=0.02,
    algebra_flops=1e10,
)


def default_place() -> Path:
    """The file that plans read if none is named: `STREAMKERNEL_RATES`, or one in the user's cache folder."""
    named = os.environ.get(PLACE)
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "streamkernel" / "rates.json"


def read_rates(path: str | os.PathLike[str] | None = None) -> Rates:
    """The rates in a file.

    Parameters
    ----------
    path : the file; None for `default_place`, and if there is none there for the built-in rates.

    Raises
    ------
    StoreNotFoundError
        There is no such file.
    ParameterError
        It holds no rates, or those of another version.
    """
    place = default_place() if path is None else Path(path)
    if not place.is_file():
        if path is None:
            return BUILT_IN
        raise StoreNotFoundError(f"there is no file of rates at {place}; measure them with {call('calibrate')}")
    again = f"measure them again with {call('calibrate')}"
    what = f"{option('rates')} {place}" if path is not None else f"{place}"
    try:
        content = parsed_json(read_file(place))
        version = content.get("version") if isinstance(content, dict) else None
        if version != VERSION:
            found = "no version" if version is None else f"version {version!r:.20}"
            raise ParameterError(f"{what} has {found} of the rates, this release reads version {VERSION}; {again}")
        rates = Rates.from_config(content)
        if not rates.kernels or not rates.sums:
            raise ModelFormatError("it has no rates of kernels or of sums")
        return rates
    except ModelFormatError as error:
        raise ParameterError(f"{what} is no file of rates ({error.message}); {again}") from None
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"{what} is no file of rates (it is not JSON: {error}); {again}") from None


def usable_rates() -> Rates:
    """The rates of this machine, or the built-in ones: a damaged file is no reason to end a fit."""
    try:
        return read_rates()
    except (OSError, ParameterError):
        return BUILT_IN


def check_writable(path: str | os.PathLike[str] | None) -> Path:
    """The place that `write_rates` writes to, before a minute is spent on measuring.

    Raises
    ------
    StoreExistsError
        Something else is there.
    StoreNotFoundError
        The folder of a named file does not exist.
    """
    place = default_place() if path is None else Path(path)
    if place.exists() or place.is_symlink():
        with suppress(OSError, ValueError):
            content = parsed_json(read_file(place))
            # Rates of any version may be replaced.
            if isinstance(content, dict) and {"version", "kernels", "task_seconds"} <= content.keys():
                return place
        raise StoreExistsError(f"{place} exists and is no file of rates; remove it, or choose another path")
    if path is None:
        place.parent.mkdir(parents=True, exist_ok=True)
    elif not place.parent.is_dir():
        raise StoreNotFoundError(f"there is no folder {place.parent} to write {place.name} into; make it first")
    return place


def write_rates(rates: Rates, path: str | os.PathLike[str] | None = None) -> Path:
    """Write rates whole or not at all; the errors are those of `check_writable`."""
    place = check_writable(path)
    with new_file(place, overwrite=True) as partial:
        partial.write_bytes(json_content(rates.to_config()) + b"\n")
    return place
