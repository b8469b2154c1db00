"""Gaussian processes, their generalised kind, and all folds of one from one sweep."""
