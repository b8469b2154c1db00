"""Boosting: members, their weights, and the path over sweeps."""
