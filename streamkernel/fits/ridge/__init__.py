"""Kernel ridge: the sums of one sweep decomposed, or iterations; alpha; all folds from one sweep."""
