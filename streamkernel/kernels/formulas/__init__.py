"""Kernels of two rows by a formula, one class a file, with what is compiled for it alone."""
