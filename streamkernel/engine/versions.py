"""The check that client, scheduler and workers run the same software; a difference raises before any work.

Functions and tables travel between them as pickles, and numbers must have the same bits on every worker.
"""

from __future__ import annotations

from typing import Any

from distributed import Client

from streamkernel.errors import ClusterError
from streamkernel.type_aliases import FieldsView, Untyped

_EVERYWHERE = ("streamkernel", "dask", "distributed", "python")
# These packages, and Numba's compiler, compute the numbers. A scheduler computes none.
_WITH_NUMBERS = (*_EVERYWHERE, "numpy", "scipy", "numba")


def check_versions(client: Client) -> None:
    """Raise for a cluster whose versions differ from those of this process.

    Raises
    ------
    ClusterError
        The message names the packages, the process, and both versions.
    """
    found: Untyped = client.get_versions(packages=["streamkernel", "numpy", "scipy", "numba"])
    here = _of(found["client"])
    places: list[tuple[str, Any, tuple[str, ...]]] = [("the scheduler", found["scheduler"], _EVERYWHERE)]
    places += [
        (f"the worker {name}", report, _WITH_NUMBERS) for name, report in sorted((found["workers"] or {}).items())
    ]
    for where, report, packages in places:
        there = _of(report)
        other = [name for name in packages if here.get(name) != there.get(name)]
        if other:
            what = ", ".join(f"{name} {here.get(name)} here and {there.get(name) or 'none'} there" for name in other)
            count = sum(any(here.get(name) != _of(each).get(name) for name in names) for _, each, names in places)
            more = f" (and {count - 1} more of its processes)" if count > 1 else ""
            raise ClusterError(
                f"{where}{more} has other versions: {what}; install the same ones everywhere (constraints.txt has a "
                "set) and start it again"
            )


def _of(report: FieldsView | None) -> dict[str, str | None]:
    """Versions by name; for Python only the first two numbers, on which pickled code depends."""
    packages = dict((report or {}).get("packages") or {})
    if packages.get("python"):
        packages["python"] = ".".join(str(packages["python"]).split(".")[:2])
    return packages
