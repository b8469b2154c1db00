"""Compressed tables: few weighted rows for many."""
