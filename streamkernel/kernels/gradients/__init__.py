"""Slopes of kernels: along the features of a row, and along the lengthscales."""
