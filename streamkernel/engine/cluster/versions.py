"""The check that client, scheduler and workers run the same software; a difference raises before any work.

Functions and tables travel between them as pickles, and numbers must have the same bits on every worker. Two builds of
one version number, such as a checkout and a wheel, differ in this, too: so the text of the package is compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from distributed import Client

from streamkernel.errors import ClusterError
from streamkernel.type_aliases import FieldsView, Untyped

_EVERYWHERE = ("streamkernel", "dask", "distributed", "python")
# These packages, and Numba's compiler, compute the numbers. A scheduler computes none.
_WITH_NUMBERS = (*_EVERYWHERE, "numpy", "scipy", "numba")


def check_versions(client: Client) -> None:
    """Raise for a cluster whose versions, or whose build of this package, differ from those of this process.

    Raises
    ------
    ClusterError
        The message names the packages, the process, and both versions or digests.
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
    _check_builds(client, here["streamkernel"])


def _check_builds(client: Client, version: str | None) -> None:
    """Raise for a process whose package has other text; the versions are equal."""
    mine, asked = source_digest(), _asked()
    found: dict[str, Any] = {"the scheduler": client.run_on_scheduler(asked)}
    # A worker that is gone computes nothing; one that joins is asked later.
    answers: dict[str, Any] = client.run(asked, on_error="return")
    found |= {f"the worker {name}": answers[name] for name in sorted(answers) if not isinstance(answers[name], OSError)}
    other = {where: digest for where, digest in found.items() if digest != mine}
    if other:
        where, digest = next(iter(other.items()))
        more = f" (and {len(other) - 1} more of its processes)" if len(other) > 1 else ""
        there = digest[:12] if isinstance(digest, str) else "that of an earlier release"
        raise ClusterError(
            f"{where}{more} has another build of streamkernel {version}: the digest of its source is {mine[:12]} here "
            f"and {there} there; install the same wheel, or the same commit, everywhere and start it again"
        )


@cache
def source_digest() -> str:
    """SHA-256 of the names and the texts of all modules of this package, as they are installed."""
    folder, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(text)} ".encode() + text)
    return digest.hexdigest()


def _asked() -> Callable[[], str | None]:
    """A function that says `source_digest` of the process that calls it; None where the package has none.

    A function within a function is pickled by value: a module of another build need not have it.
    """

    def source() -> str | None:
        try:
            from streamkernel.engine.cluster.versions import source_digest as there
        except ImportError:
            return None
        return there()

    return source


def _of(report: FieldsView | None) -> dict[str, str | None]:
    """Versions by name; for Python only the first two numbers, on which pickled code depends."""
    packages = dict((report or {}).get("packages") or {})
    if packages.get("python"):
        packages["python"] = ".".join(str(packages["python"]).split(".")[:2])
    return packages
