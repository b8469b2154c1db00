"""Certificates from numbers that sweeps return: no rows are read here.

::

    residual traces  ->  compression_bound   expected residual of a new row
    residual columns ->  sampled_residual    Frobenius error, from a fresh sample
    ridge sums       ->  dual_gap_bound      distance to the fit with all rows as basis functions
    error counts     ->  matching_pursuit_bound
    eigenvalues      ->  pca_bound           expected residual of a new row outside kernel PCA's subspace
    any such path    ->  stop_at             the size at which a rule would stop
"""

from streamkernel.bounds.compression import CompressionBound, compression_bound
from streamkernel.bounds.dual_gap import DualGap, dual_gap_bound, dual_gap_path
from streamkernel.bounds.matching_pursuit import MatchingPursuitBound, matching_pursuit_bound
from streamkernel.bounds.pca import pca_bound
from streamkernel.bounds.sampled_residual import SampledResidual, column_range, sampled_residual
from streamkernel.bounds.sampling import bardenet_maillard, deviation_radius, deviation_tail, serfling
from streamkernel.bounds.stop import BoundStop, GapStop, PursuitStop, Stop, StopRule, TraceStop, stop_at
from streamkernel.linalg import DualityPath, duality_path

__all__ = [
    "BoundStop",
    "CompressionBound",
    "DualGap",
    "DualityPath",
    "GapStop",
    "MatchingPursuitBound",
    "PursuitStop",
    "SampledResidual",
    "Stop",
    "StopRule",
    "TraceStop",
    "bardenet_maillard",
    "column_range",
    "compression_bound",
    "deviation_radius",
    "deviation_tail",
    "dual_gap_bound",
    "dual_gap_path",
    "duality_path",
    "matching_pursuit_bound",
    "pca_bound",
    "sampled_residual",
    "serfling",
    "stop_at",
]
