"""Large bases: held-out error against n with alpha by folds, by the direct solve and by conjugate gradients.

Sets of ../shared/data, one split into at most 32,000 training and 10,000 test rows, a learned metric. Errors are root
mean squared errors in deviations of the test targets, or shares of wrong labels. Each fit is a process of its own; the
plan must hold.

    scripts/bench large_basis --sizes 1000,3000 --json docs/results/large_basis.json
    scripts/bench large_basis --sizes 10000 --solvers cg --rule uniform --sets covtype-subset
"""

from __future__ import annotations

import argparse
from typing import Any

from _report import at_most, in_fresh_process, main, not_asked

SETS = ("kin40k", "protein-casp", "covtype-subset")
CLASSES = ("covtype-subset",)
CLAIM = "peak memory over the plan, largest"


def run(
    quick: bool = False,
    sets: str | None = None,
    sizes: str = "1000,3000",
    solvers: str = "direct,cg",
    rule: str = "few-sweep",
    rows: int = 32_000,
) -> dict[str, Any]:
    """The table of errors, seconds and memory; every peak is within its plan."""
    counts = (100,) if quick else tuple(int(size) for size in sizes.split(","))
    table, most = [], 0.0
    for name in sets.split(",") if sets else SETS[:1] if quick else SETS:
        for n in counts:
            for solver in solvers.split(","):
                found = in_fresh_process(
                    "_large_basis_once",
                    {
                        "name": name,
                        "classes": name in CLASSES,
                        "rows": min(rows, 2000) if quick else rows,
                        "options": {
                            "n_components": n,
                            "solver": solver,
                            "rule": rule,
                            "alpha": "cv",
                            "metric": "none" if quick else "learned",
                        },
                    },
                )
                if not found:
                    continue
                most = max(most, found["peak"] / found["planned"])
                table.append(
                    [
                        name,
                        n,
                        solver,
                        *(found[key] for key in ("error", "held_out", "alpha", "iterations", "seconds")),
                        round(found["peak"] / 1e9, 2),
                        round(found["planned"] / 1e9, 2),
                    ]
                )
    return {
        "title": f"Held-out error of large bases ({rule}), alpha by folds",
        "columns": ["set", "n", "solver", "error", "held-out", "alpha", "iterations", "s", "peak GB", "planned GB"],
        "rows": table,
        "claims": [at_most(CLAIM, most, 1.0) if table else not_asked(CLAIM, "no set is there")],
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", help=f"names, separated by commas; {', '.join(SETS)} by default")
    parser.add_argument("--sizes", default="1000,3000", help="numbers of functions, separated by commas")
    parser.add_argument("--solvers", default="direct,cg")
    parser.add_argument("--rule", default="few-sweep")
    parser.add_argument("--rows", type=int, default=32_000, help="most rows that are trained on")


if __name__ == "__main__":
    main(run, __doc__, add_arguments)
