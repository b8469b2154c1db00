"""The small fit of this folder's tests is a module of its own, so that other processes can import it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
