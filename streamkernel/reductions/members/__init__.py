"""Members of committees: their sums, their predictions and their combination."""
