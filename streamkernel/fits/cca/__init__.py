"""Kernel canonical correlations: two views, plan and fit."""
