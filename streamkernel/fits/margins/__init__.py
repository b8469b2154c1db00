"""Support vector machines, quantiles, one class and linear programming machines."""
