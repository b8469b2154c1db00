"""One fit of the `boosting` benchmark in a process of its own."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from _svm_once import split
from _tables import peak_bytes

from streamkernel import KernelBoostingClassifier, KernelSVC


def measure(who: str, name: str, rows: int, C: float, width: float, **given: Any) -> dict[str, Any]:
    """Accuracy on rows outside the fit; `width` is the lengthscale over the median distance."""
    X, y, Z, t, median = split(name, rows, two=True)
    lengthscale = width * median
    kernel: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "lengthscale": lengthscale, "scale": "none"}
    model: Any
    if who == "SVC":
        from sklearn.svm import SVC  # the other sides must not pay for it

        model = SVC(C=C, gamma=1.0 / (2.0 * lengthscale**2), cache_size=2000)
    elif who == "full":
        model = KernelSVC(machine="full", loss="hinge", C=C, calibration="none", gap_tol=1e-3, **kernel)
    else:
        model = KernelBoostingClassifier(C=C, **kernel, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
    found = {
        "rows": len(X),
        "accuracy": round(float(model.score(Z, t)), 4),
        "seconds": round(seconds, 1),
        "peak": peak_bytes(),
    }
    if who != "boosting":
        vectors = int(model.n_support_.sum()) if who == "SVC" else len(model.components_)
        return {**found, "functions": vectors, "members": "", "member": ""}
    member = next(iter(model.staged_predict(Z)))
    return {
        **found,
        "functions": len(model.components_),
        "members": len(model.member_weights_),
        "member": round(float((member == t).mean()), 4),
    }


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
