"""EigenPro 2 (Ma & Belkin 2019), as xRFM's package has it, in its own environment; rows come from an .npz file.

A Gaussian kernel with a centre at every row, float32. One line of JSON: after each epoch the seconds so far, without
those of its evaluations, and the error on the test rows.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

import numpy as np
import torch
from _peak import peak_bytes
from xrfm.rfm_src.eigenpro import KernelModel

BATCH = 2000
SUBSAMPLE = 4000  # rows of its preconditioner, whose eigenvectors take minutes of two cores for its default of 12,000


class OutOfTime(Exception):
    """The limit is reached."""


def main(argument: str) -> None:
    given = json.loads(argument)
    with np.load(given["rows"]) as rows:
        X, y, Z, f = (torch.from_numpy(np.asarray(rows[name], np.float32)) for name in ("X", "y", "Z", "f"))
    factor = -0.5 / given["lengthscale"] ** 2
    # Its preconditioner asks for a GPU by name; everything else takes the device of its arrays.
    torch.Tensor.cuda = lambda self: self
    torch.set_num_threads(len(os.sched_getaffinity(0)))

    def kernel(rows, centres):
        return torch.exp_(factor * torch.cdist(rows, centres).square_())

    stages: list[tuple[float, float]] = []
    began, away = time.perf_counter(), 0.0

    class Watched(KernelModel):
        """Its evaluations are not part of its time, and are of our rows."""

        def evaluate(self, X_eval, y_eval, bs=None, metrics=("mse",)):
            nonlocal away
            entered = time.perf_counter()
            if len(X_eval) != len(Z):  # of the training rows, which nothing here needs
                return {"mse": 1.0}
            predicted = torch.cat([self.forward(part)[:, 0] for part in torch.split(Z, BATCH)])
            error = float(torch.sqrt(torch.mean((predicted - f) ** 2)))
            stages.append((round(entered - began - away, 2), round(error, 5)))
            away += time.perf_counter() - entered
            if stages[-1][0] > given["limit"]:
                raise OutOfTime
            return {"mse": error**2}

    model = Watched(kernel, X, 1, device=torch.device("cpu"))
    # What it prints of its progress is no result.
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(OutOfTime):
        given_rows = {"n_subsamples": SUBSAMPLE, "n_eval": len(Z) - 1}
        model.fit(X, y[:, None], Z, f[:, None], given["epochs"], given["gigabytes"], **given_rows)
    peak = peak_bytes()
    print(json.dumps({"stages": stages, "peak": peak}))


if __name__ == "__main__":
    main(sys.argv[1])
