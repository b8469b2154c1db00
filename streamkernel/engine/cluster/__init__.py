"""Sweeps on the workers of a Dask cluster, on this machine or elsewhere. An import loads `distributed`."""

from streamkernel.engine.cluster._clusters import DASK_CONFIG, connect, local_cluster
from streamkernel.engine.cluster._executor import ClusterExecutor, checked_client

__all__ = ["DASK_CONFIG", "ClusterExecutor", "checked_client", "connect", "local_cluster"]
