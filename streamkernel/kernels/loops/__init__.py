"""What Numba compiles for kernels, and points packed for it.

A formula (``formula.py``) is a metric of two rows and a transform of its values. The loops fill a block by tiles: the
sums of the metric, and then the kernel values, by the writer of the transform. They are serial and release the GIL.
"""
