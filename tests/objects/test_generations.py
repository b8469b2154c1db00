"""Generations: one is current, the one before is kept, strays go by age."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamkernel.blobs import Generation, Generations, Layer, Stamp, generation_of
from streamkernel.errors import CorruptMetadataError


def written(place: Generations, *keys: str) -> str:
    name = place.new_name()
    for key in keys or ("COMPLETE",):
        place.blobs.write(f"generations/{name}/{key}", b"x")
    return name


def names(place: Generations) -> set[str]:
    return {key.split("/")[1] for key in place.blobs.keys("generations/")}


def test_one_is_current_and_the_one_before_is_kept(url: str) -> None:
    place = Generations(url)
    assert place.latest() is None
    assert generation_of(url) is None
    made: list[str] = []
    seen = []
    for _ in range(4):
        made.append(written(place))
        published = place.replace([Layer(made[-1], 0)], "digest")
        assert place.latest() == published
        seen.append(generation_of(url))
    assert names(place) == set(made[-2:])
    assert len(set(seen)) == 4
    assert generation_of(url) == seen[-1]


def test_of_two_who_append_to_the_same_one_one_succeeds(url: str) -> None:
    place = Generations(url)
    first = place.publish([Layer(written(place), 0)], "1", after=None)
    assert first is not None
    assert place.publish([Layer(written(place), 0)], "2", after=None) is None
    second = place.publish([*first.layers, Layer(written(place), 3)], "3", after=first)
    assert second is not None
    assert place.publish([*first.layers, Layer(written(place), 3)], "4", after=first) is None
    assert place.latest() == second


def test_layers_keep_the_generations_that_they_name(url: str) -> None:
    place = Generations(url)
    layers: tuple[Layer, ...] = ()
    latest: Generation | None = None
    for first in range(5):
        layers = (*layers, Layer(written(place), first))
        latest = place.publish(layers, "digest", after=latest)
        assert latest is not None
    assert names(place) == {layer.name for layer in layers}
    for _ in range(2):
        place.replace([Layer(written(place), 0)], "digest")
    assert len(names(place)) == 2


def test_a_writer_that_is_at_work_keeps_its_objects_and_a_dead_ones_go(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Generations(url)
    fresh, dead = written(place), written(place)
    stamps = type(place.blobs).stamps

    def aged(self: object, prefix: str = "") -> dict[str, Stamp]:
        found = stamps(place.blobs, prefix)
        return {
            key: stamp._replace(time=stamp.time - 2 * 86400 * 10**9) if f"/{dead}/" in key else stamp
            for key, stamp in found.items()
        }

    monkeypatch.setattr(type(place.blobs), "stamps", aged)
    current = written(place)
    place.replace([Layer(current, 0)], "digest")
    assert names(place) == {fresh, current}


def test_folders_of_that_name_that_are_not_ours_stay(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However old they are: a generation of ours has a name of twelve letters."""
    place = Generations(url)
    theirs = ["generations/2019/rows", "generations/0123456789ab", "generations/notes.txt"]
    for key in theirs:
        place.blobs.write(key, b"x")
    stamps = type(place.blobs).stamps

    def aged(self: object, prefix: str = "") -> dict[str, Stamp]:
        return {
            key: stamp._replace(time=stamp.time - 2 * 86400 * 10**9) if key in theirs else stamp
            for key, stamp in stamps(place.blobs, prefix).items()
        }

    monkeypatch.setattr(type(place.blobs), "stamps", aged)
    current = written(place)
    place.replace([Layer(current, 0)], "digest")
    assert [key for key in theirs if place.blobs.read(key) is None] == []


def test_a_plain_copy_gives_way_and_strangers_stay(url: str) -> None:
    place = Generations(url)
    for key in ("COMPLETE", "zarr.json", "config.json", "X/zarr.json", "X/c/0/0", "notes.txt", "sub/folder/file"):
        place.blobs.write(key, b"x")
    before = generation_of(url)
    assert before is not None
    name = written(place)
    own = {"COMPLETE", "zarr.json", "config.json", "X/zarr.json", "X/c/0/0"}
    place.replace([Layer(name, 0)], "digest", own.__contains__)
    assert generation_of(url) != before
    keys = place.blobs.keys()
    left = [key for key in keys if not key.startswith(("CURRENT/", "generations/"))]
    assert left == ["notes.txt", "sub/folder/file"]


@pytest.mark.parametrize(
    "layers", ["[]", '[["../../etc", 0]]', '[["zz", 0]]', "7", '[["0123456789ab"]]', '[["0123456789ab", "x"]]']
)
def test_a_pointer_that_is_not_ours(url: str, layers: str) -> None:
    place = Generations(url)
    content = f'{{"number": 1, "nonce": "n", "value": {{"generation": "a", "digest": "d", "layers": {layers}}}}}'
    place.blobs.write("CURRENT/00000001.json", content.encode())
    with pytest.raises(CorruptMetadataError):
        place.latest()


def test_generation_of_a_folder(tmp_path: Path) -> None:
    assert generation_of(tmp_path / "none") is None
    assert generation_of(str(tmp_path)) == generation_of(tmp_path) is not None
