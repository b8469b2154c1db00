"""Where a test of tables and outputs has its quick run."""

from __future__ import annotations

import pytest

__all__ = ["IN_MEMORY"]

# Tests of the layers above run in memory: a server takes milliseconds for each request, and some tests make hundreds.
IN_MEMORY = pytest.mark.parametrize("url", ["memory", pytest.param("s3", marks=pytest.mark.slow)], indirect=True)
