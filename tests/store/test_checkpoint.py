"""Checkpoints: kept per step, bound to their configuration, driven by one process; torn ones count as absent."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import errors
from streamkernel.store import Checkpoints, checkpoint
from streamkernel.store.bundle import Bundle, read_bundle, replace_bundle

CONFIG = {"seed": 1, "kernel": {"name": "gaussian", "lengthscale": 0.5}, "plan": [1, 2]}


def state(step: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(step)
    return {"gram": rng.standard_normal((5, 5)), "rows": np.array(100 + step)}


def test_states_come_back_after_reopening(tmp_path: Path) -> None:
    folder = tmp_path / ".model.run"
    with Checkpoints(folder, CONFIG) as checkpoints:
        assert checkpoints.load(0, "look") is None
        checkpoints.save(0, "look", state(0))
        checkpoints.save(1, "look", state(1))
        checkpoints.save(12, "final", {})
    with Checkpoints(folder, dict(reversed(CONFIG.items()))) as checkpoints:
        assert checkpoints.steps() == [(0, "look"), (1, "look"), (12, "final")]
        for step in (0, 1):
            loaded = checkpoints.load(step, "look")
            assert loaded is not None
            assert loaded["gram"].tobytes() == state(step)["gram"].tobytes()
            assert loaded["rows"] == 100 + step
        assert checkpoints.load(12, "final") == {}
        assert checkpoints.load(2, "look") is None
        assert checkpoints.load(1, "final") is None
        checkpoints.discard()
    assert os.listdir(tmp_path) == []


def test_a_step_saved_twice_is_the_latter(tmp_path: Path) -> None:
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints:
        checkpoints.save(0, "look", state(0))
        checkpoints.save(0, "look", state(5))
        assert checkpoints.load(0, "look")["rows"] == 105


def test_another_configuration_is_refused_with_its_fields(tmp_path: Path) -> None:
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints:
        checkpoints.save(0, "look", state(0))
    other = {"seed": 2, "kernel": {"name": "gaussian", "lengthscale": 0.5, "nu": 1}, "memory": "4GB"}
    with pytest.raises(errors.CheckpointMismatchError) as caught:
        Checkpoints(tmp_path / "run", other)
    message = str(caught.value)
    for part in ("seed: 1 there, 2 here", "kernel.nu: absent there", "plan: [1, 2] there, absent here", "memory"):
        assert part in message
    assert "lengthscale" not in message
    # The refusal released the lock and touched nothing.
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints:
        assert checkpoints.load(0, "look") is not None


def test_one_and_true_are_not_the_same_configuration(tmp_path: Path) -> None:
    Checkpoints(tmp_path / "run", {"a": 1}).close()
    with pytest.raises(errors.CheckpointMismatchError, match="a: 1 there, true here"):
        Checkpoints(tmp_path / "run", {"a": True})


def test_fresh_forgets_the_earlier_run(tmp_path: Path) -> None:
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints:
        checkpoints.save(0, "look", state(0))
    with Checkpoints(tmp_path / "run", {"seed": 2}, fresh=True) as checkpoints:
        assert checkpoints.steps() == []
        assert checkpoints.load(0, "look") is None
    with pytest.raises(errors.CheckpointMismatchError):
        Checkpoints(tmp_path / "run", CONFIG)


@pytest.mark.parametrize(
    "damage", ["no manifest", "empty folder", "empty config", "lost chunk", "torn chunk", "a file"]
)
def test_torn_newest_is_absent_with_one_warning(tmp_path: Path, damage: str) -> None:
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints:
        checkpoints.save(0, "look", state(0))
        checkpoints.save(1, "look", state(1))
    newest = tmp_path / "run" / "0001-look"
    if damage == "no manifest":
        (newest / "COMPLETE").unlink()
    elif damage == "empty folder":
        shutil.rmtree(newest)
        newest.mkdir()
    elif damage == "empty config":
        (newest / "config.json").write_bytes(b"")
    elif damage == "lost chunk":
        (newest / "gram/c/0/0").unlink()
    elif damage == "torn chunk":
        (newest / "gram/c/0/0").write_bytes((newest / "gram/c/0/0").read_bytes()[:50])
    else:
        shutil.rmtree(newest)
        newest.write_text("x")
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints:
        with pytest.warns(errors.StreamKernelWarning, match="0001-look cannot be used") as caught:
            assert checkpoints.load(1, "look") is None
        assert len(caught) == 1
        assert checkpoints.load(0, "look") is not None
        checkpoints.save(1, "look", state(1))
        assert checkpoints.load(1, "look")["rows"] == 101
    assert sorted(os.listdir(tmp_path / "run")) == ["0000-look", "0001-look", "lock", "run.json"]


@pytest.mark.parametrize("theirs", [None, 1, checkpoint.REVISION + 1])
def test_step_of_another_release_is_done_again(tmp_path: Path, theirs: int | None) -> None:
    """Its sums may have another meaning: partly whitened ones look like others."""
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints:
        checkpoints.save(0, "look", state(0))
        step = tmp_path / "run" / "0000-look"
        saved = read_bundle(str(step), checkpoint.KIND)
        config = {name: value for name, value in saved.config.items() if name != "revision"}
        if theirs is not None:
            config["revision"] = theirs
        replace_bundle(step, Bundle(checkpoint.KIND, 1, config, saved.arrays))
        with pytest.warns(errors.StreamKernelWarning, match="0000-look cannot be used .* by another release"):
            assert checkpoints.load(0, "look") is None


def test_step_of_another_run_is_not_taken(tmp_path: Path) -> None:
    for seed in (1, 2):
        with Checkpoints(tmp_path / f"run{seed}", {"seed": seed}) as checkpoints:
            checkpoints.save(0, "look", state(seed))
    shutil.rmtree(tmp_path / "run1" / "0000-look")
    shutil.copytree(tmp_path / "run2" / "0000-look", tmp_path / "run1" / "0000-look")
    with (
        Checkpoints(tmp_path / "run1", {"seed": 1}) as checkpoints,
        pytest.warns(errors.StreamKernelWarning, match="belongs to another run"),
    ):
        assert checkpoints.load(0, "look") is None


def test_stray_partials_are_removed_at_opening(tmp_path: Path) -> None:
    Checkpoints(tmp_path / "run", CONFIG).close()
    stray = tmp_path / "run" / ".0003-look.0a1b2c3d.partial"
    (stray / "gram").mkdir(parents=True)
    kept = tmp_path / "run" / "notes.partial"
    kept.mkdir()
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints:
        assert not stray.exists()
        assert kept.exists()
        assert checkpoints.steps() == []


def test_corrupt_run_file(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Checkpoints(folder, CONFIG):
        pass
    (folder / "run.json").write_bytes(b"")
    with Checkpoints(folder, CONFIG) as checkpoints:  # nothing saved yet: nothing to protect
        checkpoints.save(0, "look", state(0))
    (folder / "run.json").write_bytes(b"")
    with pytest.raises(errors.CorruptMetadataError, match=r"run\.json"):
        Checkpoints(folder, CONFIG)
    with Checkpoints(folder, CONFIG, fresh=True) as checkpoints:
        assert checkpoints.steps() == []


def test_second_driver_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints:
        with pytest.raises(errors.RunLockedError, match=f"driven by process {os.getpid()}"):
            Checkpoints(tmp_path / "run", CONFIG)
        with pytest.raises(errors.RunLockedError):
            Checkpoints(tmp_path / "run", CONFIG, fresh=True)
        checkpoints.save(0, "look", state(0))
    Checkpoints(tmp_path / "run", CONFIG).close()


def test_closed_checkpoints_write_nothing(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "run", CONFIG)
    checkpoints.close()
    checkpoints.close()
    with pytest.raises(errors.RunLockedError, match="closed or removed"):
        checkpoints.save(0, "look", state(0))
    gone = Checkpoints(tmp_path / "run", CONFIG)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(errors.RunLockedError):
        gone.save(0, "look", state(0))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("step", "name"), [(-1, "look"), (True, "look"), (1.0, "look"), (0, ""), (0, "../x"), (0, "A")]
)
def test_bad_steps(tmp_path: Path, step: int, name: str) -> None:
    with Checkpoints(tmp_path / "run", CONFIG) as checkpoints, pytest.raises(errors.ParameterError):
        checkpoints.save(step, name, {})


def test_nan_in_the_configuration_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(errors.ParameterError, match=r"config\.alpha is nan"):
        Checkpoints(tmp_path / "run", {"alpha": float("nan")})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("where", ["before", "rename", "rmtree"])
def test_a_signal_while_a_finished_run_is_removed(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal is told, and nothing is left: what was removed already is no error."""
    left = [True]

    def once(known: Any) -> Any:
        def interrupted(*arguments: Any, **options: Any) -> None:
            if where != "before" or not left:
                known(*arguments, **options)
            if left:
                left.clear()
                raise KeyboardInterrupt

        return interrupted

    owner, name = (shutil, "rmtree") if where == "rmtree" else (os, "rename")

    def run() -> None:
        with Checkpoints(tmp_path / "run", {}).kept_for_resume(()) as checkpoints:
            checkpoints.save(0, "look", {"x": np.ones(3)})
            monkeypatch.setattr(owner, name, once(getattr(owner, name)))
            checkpoints.discard()

    with pytest.raises(KeyboardInterrupt):
        run()
    assert not left
    assert list(tmp_path.iterdir()) == []
