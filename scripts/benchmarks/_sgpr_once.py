"""GPyTorch's SGPR at fixed hyper-parameters and inducing points: runs in the peers' own environment.

    python _sgpr_once.py ARRAYS.npz

ARRAYS holds X, y, X_test, y_test (float64), Z inducing points, lengthscale (p,), signal, noise; the mean is 0. One line
of JSON: RMSE and NLPD on the test rows, coverage of the 95 % intervals, seconds, peak memory.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings

import gpytorch
import numpy as np
import torch
from _peak import peak_bytes


class Sgpr(gpytorch.models.ExactGP):
    def __init__(self, X, y, Z, lengthscale, signal, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))
        base.base_kernel.lengthscale = torch.tensor(lengthscale)
        base.outputscale = signal
        self.covar_module = gpytorch.kernels.InducingPointKernel(base, inducing_points=Z, likelihood=likelihood)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def measure(path: str) -> dict[str, float]:
    torch.set_num_threads(2)
    arrays = np.load(path)
    X, y, X_test, y_test, Z = (torch.from_numpy(arrays[name]) for name in ("X", "y", "X_test", "y_test", "Z"))
    began = time.perf_counter()
    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-8))
    model = Sgpr(X, y, Z, arrays["lengthscale"], float(arrays["signal"]), likelihood).double()
    likelihood.double().noise = float(arrays["noise"])
    model.eval()
    likelihood.eval()
    means, variances = [], []
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in torch.split(X_test, 2000):
            found = likelihood(model(part))
            means.append(found.mean)
            variances.append(found.variance)
    mean, variance = torch.cat(means), torch.cat(variances)
    square = (y_test - mean) ** 2
    return {
        "rmse": math.sqrt(float(square.mean())),
        "nlpd": float((0.5 * torch.log(2 * math.pi * variance) + square / (2 * variance)).mean()),
        "coverage95": float((square <= 1.959964**2 * variance).double().mean()),
        "seconds": time.perf_counter() - began,
        "peak": peak_bytes(),
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
