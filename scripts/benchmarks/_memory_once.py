"""One fit of the `memory` benchmark in a process of its own: what was promised, what was measured."""

from __future__ import annotations

import json
import sys
from typing import Any

from _tables import peak_bytes

from streamkernel import KernelRidge
from streamkernel.engine import Session
from streamkernel.engine.cluster import local_cluster
from streamkernel.fits.ridge.ridge import fit_ridge
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.table import open_table


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    store, n = arguments["store"], arguments["n"]
    if arguments["where"] == "threads":
        run = KernelRidge(n).fit(store).model_.config["run"]
        # The kernel's own high-water mark sees what falls between two looks of the meter.
        peak = max(run["peak_memory_bytes"], peak_bytes())
    else:
        with local_cluster() as executor:
            settings = RidgeSettings(n_components=n)
            run = fit_ridge(open_table(store), settings, Session(executor)).config["run"]
        peak = run["peak_memory_bytes"]
    return {"peak": peak, "planned": run["planned_memory_bytes"], "seconds": run["seconds"]}


if __name__ == "__main__":
    # Dask starts its workers by importing this module anew.
    print(json.dumps(measure(json.loads(sys.argv[1]))))
