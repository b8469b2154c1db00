"""Kernels of rows in another form: some of their columns, mapped to circles, sparse ones, those of a kernel matrix."""
