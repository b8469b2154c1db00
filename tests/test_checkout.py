"""Scripts that write pages and archives take the package of their checkout, whatever is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

SCRIPT = """
import sys
import streamkernel
from checkout import with_this_package
with_this_package()
print(streamkernel.__file__, *sys.argv[1:])
"""


@pytest.mark.parametrize("beside", [False, True])
def test_a_script_runs_again_with_the_package_of_the_checkout(tmp_path: Path, beside: bool) -> None:
    (tmp_path / "other" / "streamkernel").mkdir(parents=True)
    (tmp_path / "other" / "streamkernel" / "__init__.py").touch()
    script = tmp_path / ("other" if beside else ".") / "script.py"
    script.write_text(SCRIPT)
    path = os.pathsep.join([str(tmp_path / "other"), str(ROOT / "tests")])
    command = [sys.executable, str(script), "a", "b c"]
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False
    )
    if beside:  # Python looks there first, whatever is asked for.
        assert f"stands before the package of {ROOT}" in ran.stderr
    else:
        assert ran.stdout == f"{ROOT / 'streamkernel' / '__init__.py'} a b c\n", ran.stderr
