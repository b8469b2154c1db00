"""One fit of ThunderSVM on processors, in its own environment; rows come from an .npz file."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from _peak import peak_bytes


def main(argument: str) -> None:
    from thundersvm import SVC

    given = json.loads(argument)
    with np.load(given["rows"]) as rows:
        X, y, Z, t = (rows[name] for name in ("X", "y", "Z", "t"))
    classes, codes = np.unique(y, return_inverse=True)
    model = SVC(C=given["C"], gamma=given["gamma"])
    began = time.perf_counter()
    model.fit(X, codes)
    seconds = time.perf_counter() - began
    accuracy = float((classes[model.predict(Z).astype(int)] == t).mean())
    peak = peak_bytes()
    print(json.dumps({"rows": len(X), "accuracy": round(accuracy, 4), "seconds": round(seconds, 1), "peak": peak}))


if __name__ == "__main__":
    main(sys.argv[1])
