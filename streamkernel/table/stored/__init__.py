"""Rows that lie in Zarr, on a disk or at a URL: metadata read strictly, chunks that must be there, rows as pinned."""
