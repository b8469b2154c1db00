"""Compression: few weighted rows that stand for many, which any estimator then fits."""

from streamkernel.compression.compressed import CompressedTable, Rows

__all__ = ["CompressedTable", "Rows"]
