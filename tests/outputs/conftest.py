"""What writes an output, of each kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from outputs.written import WRITERS


@pytest.fixture(params=list(WRITERS))
def writer(request: pytest.FixtureRequest) -> Callable[..., None]:
    return WRITERS[request.param]
