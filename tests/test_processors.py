"""`scripts/test --processor`: what it sets has an effect in every library, or it refuses."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import replace

import _processor
import pytest
from clusters import ROOT
from slow_cases import slow_but

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the processors are of the x86 family")


@pytest.mark.parametrize("name", slow_but(["haswell"], _processor.PROCESSORS))
def test_all_libraries_take_the_processor(name: str) -> None:
    variables = _processor.environment(name)
    reason = _processor.refusal(name, variables)
    if "this machine has no" in reason:
        pytest.skip(reason)
    assert reason == ""
    if _processor.PROCESSORS[name].numba:
        command = [
            sys.executable,
            "-c",
            "from streamkernel.kernels.loops._tile import VECTOR_BYTES; print(VECTOR_BYTES)",
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)} | variables
        assert subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout == b"32\n"


def test_what_has_no_effect_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    nehalem = _processor.PROCESSORS["nehalem"]
    assert "not OpenBLAS with the kernels of Nehalem" in _processor.refusal("nehalem", {"OPENBLAS_CORETYPE": "Haswell"})
    monkeypatch.setitem(_processor.PROCESSORS, "bird", replace(nehalem, needs=("wings",)))
    assert _processor.main("bird") == 1
    assert capsys.readouterr() == ("", "this machine cannot imitate bird: this machine has no wings\n")
    assert _processor.main("duck") == 2
