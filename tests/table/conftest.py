"""What the tests of tables share."""

import numpy as np
import pytest
from table.zarr_stores import X, Y

from streamkernel.table.ingest import ingest


@pytest.fixture
def store(tmp_path):
    np.savez(tmp_path / "source.npz", X=X, y=Y)
    ingest(tmp_path / "source.npz", tmp_path / "store", chunk_rows=32)
    return tmp_path / "store"
