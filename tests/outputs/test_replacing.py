"""Only a whole output of the same kind is replaced, and of it nothing that we did not write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from outputs.written import FOREIGN, WRITERS, X, held, model, ridge, rows, table

import streamkernel.outputs.partial as partial
from streamkernel import Factor, atomic, factorize, open_table
from streamkernel.atomic import HeldLock
from streamkernel.blobs import blobs_at
from streamkernel.cli import main
from streamkernel.errors import (
    InputChangedError,
    ParameterError,
    StoreAccessError,
    StoreExistsError,
    StreamKernelWarning,
)
from streamkernel.report import draw_png, write_report
from streamkernel.table.ingest import append_rows


@pytest.mark.parametrize("foreign", list(FOREIGN))
def test_what_is_not_ours_is_left_as_it_is(tmp_path: Path, writer: Callable[..., None], foreign: str) -> None:
    place = tmp_path / "place"
    FOREIGN[foreign](place)
    before = held(place)
    with pytest.raises(StoreExistsError, match=f"{place} .*remove it yourself or choose another path"):
        writer(place, overwrite=True)
    assert held(place) == before
    assert os.listdir(tmp_path) == ["place"]


@pytest.mark.parametrize("there", list(WRITERS))
def test_only_the_same_kind_is_replaced(tmp_path: Path, writer: Callable[..., None], there: str) -> None:
    WRITERS[there](tmp_path / "place")
    before = held(tmp_path)
    if WRITERS[there] is writer:
        writer(tmp_path / "place", overwrite=True)
        assert os.listdir(tmp_path) == ["place"]
    else:
        with pytest.raises(StoreExistsError, match="remove it yourself or choose another path"):
            writer(tmp_path / "place", overwrite=True)
        assert held(tmp_path) == before


def plant_file(place: Path) -> None:
    (place / "thesis.txt").write_text("x")


def plant_beside_chunks(place: Path) -> None:
    folder = next(path for path in place.rglob("c") if path.is_dir())
    (folder / "9999").write_bytes(b"no chunk has this number")


def plant_folder(place: Path) -> None:
    (place / "drafts").mkdir()


def plant_array(place: Path) -> None:
    (place / "mine" / "c").mkdir(parents=True)
    (place / "mine" / "c" / "0").write_bytes(b"x")


def plant_link(place: Path) -> None:
    (place / "COMPLETE").rename(place.parent / "elsewhere")
    (place / "COMPLETE").symlink_to(place.parent / "elsewhere")


def plant_link_to_a_folder(place: Path) -> None:
    (place / "data").symlink_to(place.parent)


def plant_pipe(place: Path) -> None:
    os.mkfifo(place / "pipe")


PLANTED = [
    plant_file, plant_beside_chunks, plant_folder, plant_array, plant_link, plant_link_to_a_folder, plant_pipe,
]  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED)
def test_what_was_added_to_ours_is_told(
    tmp_path: Path, writer: Callable[..., None], plant: Callable[..., None]
) -> None:
    place = tmp_path / "place"
    writer(place)
    plant(place)
    names = os.listdir(place)
    with pytest.raises(StoreExistsError, match=r"which streamkernel did not write|remove it yourself"):
        writer(place, overwrite=True)
    assert sorted(os.listdir(place)) == sorted(names)


def test_what_is_not_whole_is_not_replaced(tmp_path: Path, writer: Callable[..., None]) -> None:
    writer(tmp_path / "place")
    for name in ("COMPLETE", "zarr.json"):
        kept = (tmp_path / "place" / name).read_bytes()
        (tmp_path / "place" / name).write_bytes(b"")
        with pytest.raises(StoreExistsError, match="remove it yourself"):
            writer(tmp_path / "place", overwrite=True)
        (tmp_path / "place" / name).write_bytes(kept)
    writer(tmp_path / "place", overwrite=True)


def test_a_link_is_not_followed(tmp_path: Path, writer: Callable[..., None]) -> None:
    writer(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    before = held(tmp_path)
    with pytest.raises(StoreExistsError, match="link is a symbolic link to real, which is not followed"):
        writer(tmp_path / "link", overwrite=True)
    assert held(tmp_path) == before


def test_what_came_while_it_was_built_stays(
    tmp_path: Path, writer: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first look and the last; and then between the last look and the step that replaces."""
    place = tmp_path / "place"
    writer(place)
    looks = iter([False, True])
    check = partial.check_output

    def looked(*arguments: object, **options: object) -> None:
        if next(looks):
            plant_file(place)
        check(*arguments, **options)  # type: ignore[arg-type]

    looks = iter([True])
    monkeypatch.setattr(partial, "check_output", looked)
    before = held(place)
    with pytest.raises(StoreExistsError, match=r"holds thesis.txt"):
        writer(place, overwrite=True)
    assert held(place) == {**before, "thesis.txt": b"x"}

    monkeypatch.setattr(partial, "check_output", lambda *arguments, **options: plant_file(place))
    (place / "thesis.txt").unlink()
    with pytest.warns(StreamKernelWarning, match=r"did not write.*\.former \(thesis\.txt\)"):
        writer(place, overwrite=True)
    [former] = tmp_path.glob(".place.*.former")
    assert held(former) == {"thesis.txt": b"x"}
    monkeypatch.undo()
    # No later run takes it for a stray.
    writer(place, overwrite=True)
    assert held(former) == {"thesis.txt": b"x"}


@pytest.mark.slow
def test_mounts_are_left_alone(tmp_path: Path) -> None:
    """An empty folder at which something is mounted, and a folder of an output that is one: told before any work."""
    rows(tmp_path / "place")
    (tmp_path / "empty").mkdir()
    (tmp_path / "around").mkdir()
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "0").write_bytes(b"theirs")
    inner = next(path for path in (tmp_path / "place").rglob("c") if path.is_dir())
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from outputs.written import WRITERS
for place in ("empty", "place"):
    try:
        WRITERS["rows"](Path({str(tmp_path)!r}) / place, overwrite=True)
    except FileExistsError as error:
        print(error)
"""
    script = (
        f"mount --bind {tmp_path}/around {tmp_path}/empty && mount --bind {tmp_path}/inside {inner} && "
        f"exec {sys.executable} -c '{code.replace(chr(39), chr(34))}'"
    )
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("no mounts can be made here")
    assert "empty is a mount point" in done.stdout, done
    assert f"{inner.relative_to(tmp_path / 'place')} (a mount), which streamkernel did not write" in done.stdout
    assert (tmp_path / "inside" / "0").read_bytes() == b"theirs"


def test_parts_of_a_factor_are_replaced_by_those_alone(tmp_path: Path) -> None:
    factorize(open_table(X), tmp_path / "f", n_components=4, lengthscale=1.0, random_state=0)
    rows(tmp_path / "predictions")
    for path, write in (("f/rows", rows), ("f/basis", model), ("f", model), ("f", table)):
        with pytest.raises(StoreExistsError):
            write(tmp_path / path, overwrite=True)
    (tmp_path / "g").mkdir()
    (tmp_path / "predictions").rename(tmp_path / "g" / "rows")
    with pytest.raises(StoreExistsError, match="rows exists and is not the rows of a factor"):
        factorize(open_table(X), tmp_path / "g", n_components=4, lengthscale=1.0, random_state=0, overwrite=True)
    (tmp_path / "f" / "rows" / "thesis.txt").write_text("x")
    with pytest.raises(StoreExistsError, match=r"holds thesis\.txt"):
        factorize(open_table(X), tmp_path / "f", n_components=4, lengthscale=1.0, random_state=0, overwrite=True)
    (tmp_path / "f" / "rows" / "thesis.txt").unlink()
    (tmp_path / "link").symlink_to("f")
    with pytest.raises(StoreExistsError, match="link is a symbolic link to f, which is not followed"):
        factorize(open_table(X), tmp_path / "link", n_components=4, lengthscale=1.0, random_state=0, overwrite=True)
    factorize(open_table(X), tmp_path / "f", n_components=3, lengthscale=1.0, random_state=0, overwrite=True)
    assert Factor.load(tmp_path / "f").shape == (64, 3)


def test_models_that_are_saved_and_updated_in_place(tmp_path: Path) -> None:
    fitted = ridge().fit(X, X[:, 0])
    fitted.save(tmp_path / "m")
    (tmp_path / "m" / "card.md").write_text("x")
    with pytest.raises(StoreExistsError, match=r"holds card\.md"):
        fitted.save(tmp_path / "m", overwrite=True)
    ingest_rows = tmp_path / "t"
    table(ingest_rows)
    assert main(["update", str(tmp_path / "m"), str(ingest_rows)]) == 1
    assert (tmp_path / "m" / "card.md").read_text() == "x"


@pytest.mark.slow
def test_reports_and_pictures_replace_their_like(tmp_path: Path) -> None:
    fitted = ridge().fit(X, X[:, 0]).model_
    fitted.save(tmp_path / "m")
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text("<html>my thesis</html>")
    picture.write_bytes(b"\x89PNG\r\n\x1a\n of a holiday")
    with pytest.raises(StoreExistsError, match=r"page.html exists and is not a report of streamkernel"):
        write_report(fitted, page, overwrite=True)
    with pytest.raises(StoreExistsError, match=r"page.png exists and is not a picture of streamkernel"):
        draw_png(fitted, picture)
    assert main(["report", str(tmp_path / "m"), str(tmp_path / "new.html"), "--png", str(picture)]) == 1
    assert not (tmp_path / "new.html").exists()
    again = ((page, lambda: write_report(fitted, page, overwrite=True)), (picture, lambda: draw_png(fitted, picture)))
    for path, write in again:
        path.unlink()
        write()
        write()
        own = path.read_bytes()
        path.rename(tmp_path / "real")
        path.symlink_to("real")
        with pytest.raises(StoreExistsError, match="not a"):
            write()
        assert (tmp_path / "real").read_bytes() == own
        assert path.is_symlink()
        path.unlink()


def test_appending_keeps_what_is_not_ours(tmp_path: Path) -> None:
    from streamkernel import append_rows

    table(tmp_path / "t")
    plant_file(tmp_path / "t")
    append_rows(X, tmp_path / "t")
    assert (tmp_path / "t" / "thesis.txt").read_text() == "x"
    assert os.listdir(tmp_path) == ["t"]
    assert len(open_table(tmp_path / "t")) == 128


def test_long_names_are_refused_before_the_work(tmp_path: Path, writer: Callable[..., None]) -> None:
    writer(tmp_path / ("n" * 223))
    for size in (224, 250, 255):
        with pytest.raises(ParameterError, match=f"has {size} bytes"):
            writer(tmp_path / ("n" * size))
    assert os.listdir(tmp_path) == ["n" * 223]
    with pytest.raises(ParameterError, match="has 250 bytes"):
        write_report(ridge().fit(X, X[:, 0]).model_, tmp_path / f"{'n' * 245}.html")


def test_at_a_url(s3: str, writer: Callable[..., None]) -> None:
    """The same: foreign objects are left, and told; what is ours is replaced."""
    foreign = blobs_at(f"{s3}/foreign")
    foreign.write("config.json", b'{"architectures": ["LlamaForCausalLM"]}')
    foreign.write("weights/zarr.json", b"{}")
    foreign.write("zarr.json", b'{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    with pytest.raises(StoreExistsError, match="remove it yourself"):
        writer(f"{s3}/foreign", overwrite=True)
    assert foreign.keys() == ["config.json", "weights/zarr.json", "zarr.json"]

    writer(f"{s3}/ours")
    writer(f"{s3}/ours", overwrite=True)
    for key in ("thesis.txt", "drafts/1.txt", "generations/first draft/1.txt"):
        blobs_at(f"{s3}/ours").write(key, b"x")
        with pytest.raises(StoreExistsError, match=f"holds {key[:9]}.*, which streamkernel did not write"):
            writer(f"{s3}/ours", overwrite=True)
        assert blobs_at(f"{s3}/ours").read(key) == b"x"
        blobs_at(f"{s3}/ours").remove(key)
    writer(f"{s3}/ours", overwrite=True)


def test_a_plain_copy_at_a_url_loses_only_what_is_its_own(s3: str, tmp_path: Path, writer: Callable[..., None]) -> None:
    writer(tmp_path / "place")
    copy = blobs_at(f"{s3}/copy")
    for key, value in held(tmp_path / "place").items():
        if value != b"/":
            assert isinstance(value, bytes)
            copy.write(key, value)
    copy.write("mine/zarr.json", b"{}")
    with pytest.raises(StoreExistsError, match=r"holds mine/zarr.json"):
        writer(f"{s3}/copy", overwrite=True)
    copy.remove("mine/zarr.json")
    writer(f"{s3}/copy", overwrite=True)
    assert {key.partition("/")[0] for key in copy.stamps()} == {"CURRENT", "generations"}


def test_somebody_elses_generations_are_not_taken_for_ours(s3: str, writer: Callable[..., None]) -> None:
    blobs_at(f"{s3}/place").write("generations/year 1/rows", b"x")
    with pytest.raises(StoreExistsError):
        writer(f"{s3}/place")
    assert np.array_equal([blobs_at(f"{s3}/place").read("generations/year 1/rows")], [b"x"])


def test_a_former_output_that_may_not_be_removed_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    model(place)
    # As where its folders belong to another user.
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
    with pytest.warns(StreamKernelWarning, match=r"or may not remove, is in .*\.former \(.*\); move it away"):
        model(place, overwrite=True)
    monkeypatch.undo()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".former"]
    # The next replacement may remove it, as nothing in it is anybody else's.
    model(place, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_a_former_output_of_a_killed_replacement(tmp_path: Path, writer: Callable[..., None]) -> None:
    """Where two names cannot be exchanged there are two renames, and a process may be killed around the second."""
    place, former = tmp_path / "place", tmp_path / ".place.0123abcd.former"
    writer(place)
    os.rename(place, former)
    writer(place)
    assert former.exists(), "it was to be renamed back"
    (former / "thesis.txt").write_text("mine")
    writer(place, overwrite=True)
    assert (former / "thesis.txt").read_text() == "mine"
    (former / "thesis.txt").unlink()
    lock = HeldLock.acquire(former)
    assert lock is not None
    writer(place, overwrite=True)
    assert former.exists(), "somebody else removes it"
    lock.release()
    writer(place, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_a_link_in_the_place_of_a_former_output_leads_to_one_that_nobody_replaced(
    tmp_path: Path, writer: Callable[..., None]
) -> None:
    for name in ("place", "other"):
        writer(tmp_path / name)
    (tmp_path / ".place.0123abcd.former").symlink_to(tmp_path / "other")
    before = held(tmp_path / "other")
    writer(tmp_path / "place", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".place.0123abcd.former", "other", "place"]
    assert held(tmp_path / "other") == before


def test_an_output_of_another_user_in_a_sticky_folder_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Callable[..., None]
) -> None:
    tmp_path.chmod(0o1777)
    writer(tmp_path / "place")
    before = held(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(StoreAccessError, match=r"belongs to another user, .*sticky"):
        writer(tmp_path / "place", overwrite=True)
    assert held(tmp_path) == before


@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize("moment", ["flushed", "looked at"])
def test_appended_rows_never_replace_what_came_in_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, exchanges: bool
) -> None:
    """After the last look at the lock, while the new chunks are flushed: all said that they had succeeded."""
    place, flush, exchange, left = tmp_path / "place", atomic._fsync_tree, atomic._exchange, ["flushed", "looked at"]
    table(place)

    def overwritten(now: str) -> None:
        if now in left:
            left.remove(now)
            if now == moment:
                left.clear()
                table(place, overwrite=True)

    def flushed(folder: Path) -> None:
        flush(folder)
        overwritten("flushed")

    def exchanged(first: Path, second: Path) -> bool:
        overwritten("looked at")
        return exchanges and exchange(first, second)

    monkeypatch.setattr(atomic, "_fsync_tree", flushed)
    monkeypatch.setattr(atomic, "_exchange", exchanged)
    with pytest.raises(InputChangedError, match="was replaced while rows were being appended to it; nothing was"):
        append_rows(X, place)
    np.testing.assert_array_equal(open_table(place).read(0, 64).X, X + 1)
    append_rows(X, place)
    assert open_table(place).n_rows == 128
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_appended_rows_do_not_bring_back_what_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, flush = tmp_path / "place", atomic._fsync_tree
    table(place)
    monkeypatch.setattr(atomic, "_fsync_tree", lambda folder: (flush(folder), shutil.rmtree(place)))
    with pytest.raises(InputChangedError, match="was replaced while rows were being appended"):
        append_rows(X, place)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("others", [1, 2])
def test_the_latest_of_several_who_replace_one_folder_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """They come before the exchange of the one who may replace the first folder only, and before it is undone."""
    place, ours, exchange = tmp_path / "place", tmp_path / "ours", atomic._exchange
    theirs = [tmp_path / f"theirs {number}" for number in range(others)]
    for folder in (place, ours, *theirs):
        folder.mkdir()
        (folder / folder.name).write_text("")
    former, waiting = place.stat().st_ino, list(theirs)

    def exchanged(first: Path, second: Path) -> bool:
        if waiting:
            exchange(waiting.pop(0), place)
        return exchange(first, second)

    monkeypatch.setattr(atomic, "_exchange", exchanged)
    assert not atomic.publish_folder(ours, place, lambda folder, successor: None, overwrite=True, former=former)
    assert os.listdir(place) == [theirs[-1].name]
