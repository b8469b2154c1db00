"""The low-rank factor of a kernel matrix, and where a bound ends its picks."""
