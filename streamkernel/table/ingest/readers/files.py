"""The files of a source: of one path, a folder, a pattern or several of them, in the order in which they are read.

=======  ======================================================================================================
file     itself, by its name's suffix
folder   the CSV, Parquet or Arrow files below it, of one kind, in the order of their paths; names that begin with
         "_" or "." are left out
pattern  what it matches, in the order of the paths; ``**`` stands for folders of any depth
several  those of each, one after the other; they are of one kind, and none is there twice
=======  ======================================================================================================

Links are followed, those to folders too, but for those that lead in a circle. What is found in a folder both with and
without a linked folder is read once.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from streamkernel.blobs import check_link, display_form, is_url
from streamkernel.errors import ParameterError, SourceFormatError, StoreAccessError, StoreNotFoundError
from streamkernel.table.ingest.readers._plain_bytes import COMPRESSIONS
from streamkernel.type_aliases import Unchecked

# Kinds of files by suffix. Several files of a kind can be one source where columns have names.
KINDS = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".feather": "Arrow",
    ".arrow": "Arrow",
    ".npz": "NPZ",
    ".npy": "NPY",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".txt": "libsvm",
}
_SEVERAL = ("CSV", "Parquet", "Arrow")


@dataclass(frozen=True)
class SourceFile:
    """A file with rows; as text it is its path as the user wrote it.

    Attributes
    ----------
    path, suffix, kind
        Path; suffix without that of a compression; kind of its content.
    folders
        Names of the folders in which it lies, below the place that the user named.
    label
        Its name for messages, where that is not the path.
    """

    path: Path
    suffix: str
    kind: str
    folders: tuple[str, ...] = ()
    label: str | None = None

    def __str__(self) -> str:
        return self.label or str(self.path)

    @classmethod
    def at(cls, path: Path, folders: tuple[str, ...]) -> SourceFile:
        """The file at a path.

        Raises
        ------
        ParameterError, StoreAccessError, SourceFormatError
            Its suffix is that of no source, it may not be read, or it is empty.
        """
        suffix = _suffix(path)
        kind = KINDS.get(suffix)
        if kind is None:
            raise ParameterError(
                f"{path}: a source is .csv or .tsv (also {', '.join(COMPRESSIONS)}), .parquet, .feather, .arrow, a "
                "folder or a pattern of such files, .npz, .npy, .libsvm, .svm, .txt, or a Zarr array or group"
            )
        _check_readable(path)
        if path.stat().st_size == 0:
            raise SourceFormatError(f"{path}:1:1: the file is empty; give a header and rows")
        return cls(path, suffix, kind, folders)


def is_pattern(path: str | Path) -> bool:
    """Whether a path that does not exist stands for others."""
    return isinstance(path, Path) and not os.path.lexists(path) and glob.has_magic(str(path))


def is_file_of_columns(source: str) -> bool:
    """Whether a path is that of a CSV, Parquet or Arrow file, a folder or a pattern of such files; none is read."""
    if is_url(source):
        return False
    place = display_form(source)
    if isinstance(place, str):
        return False
    if place.is_dir():
        return not is_zarr(place) and bool(_sources_below(place))
    return is_pattern(place) or KINDS.get(_suffix(place)) in _SEVERAL


def is_file_of_arrays(source: str) -> bool:
    """Whether a path is that of a file of numbers without columns of kinds: NPZ, NPY or libsvm; it is not read."""
    if is_url(source):
        return False
    place = display_form(source)
    return isinstance(place, Path) and place.is_file() and KINDS.get(_suffix(place), _SEVERAL[0]) not in _SEVERAL


def is_zarr(path: str | Path) -> bool:
    """Whether a location is one of a Zarr store: a URL, or a folder with Zarr's metadata."""
    return isinstance(path, str) or any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))


def several_sources(source: Unchecked) -> bool:
    """Whether a source is a list of paths (a list of numbers is rows)."""
    return (
        isinstance(source, (list, tuple))
        and bool(source)
        and all(isinstance(one, (str, os.PathLike)) for one in source)
    )


def source_files(sources: Sequence[str | os.PathLike[str]]) -> list[SourceFile]:
    """The files of one source or of several.

    Raises
    ------
    ParameterError, StoreNotFoundError, StoreAccessError, SourceFormatError
        Nothing is there, or what is there cannot be read as one table.
    """
    places = [display_form(source) for source in sources]
    paths = [path for place in places for path in _paths(place)]
    root = _named_folder(places, paths)
    files = [SourceFile.at(path, Path(os.path.relpath(path, root)).parts[:-1]) for path in paths]
    if len(files) > 1:
        _check_together(files)
    return files


def _suffix(path: Path) -> str:
    """The suffix that tells the kind of a file; that of a compression stays where no other kind can be compressed."""
    last = path.suffix.lower()
    if last not in COMPRESSIONS:
        return last
    inner = Path(path.stem).suffix.lower()
    return inner if KINDS.get(inner) == "CSV" else last


def _paths(place: str | Path) -> list[Path]:
    if is_zarr(place):
        raise ParameterError(
            f"{place} is a Zarr store or a URL, which cannot be one of several sources; ingest it, and append the "
            "others"
        )
    assert isinstance(place, Path)
    if is_pattern(place):
        found = sorted(_matches(place))
        if not found:
            raise StoreNotFoundError(f"no file matches {place}; check the pattern (nothing was created)")
        return [path for match in found for path in _paths(match)]
    if not os.path.lexists(place):
        raise StoreNotFoundError(f"there is no source at {place}; check the path (nothing was created)")
    _check_readable(place)
    return _files_below(place) if place.is_dir() else [place]


def _matches(pattern: Path) -> Iterable[Path]:
    """What a pattern matches: where it has ``**``, files alone."""
    if "**" not in pattern.parts:  # glob follows links in a circle, too, again and again
        return (Path(match) for match in glob.glob(str(pattern)))
    root = _fixed_part(pattern)
    places = {root}
    for part in pattern.relative_to(root).parts:
        if part == "**":
            places = {path for place in places if place.is_dir() for path in (place, *_below(place))}
        else:
            places = {place / name for place in places for name in glob.glob(part, root_dir=place)}
    return _read_once(root, [path for path in places if _may_be_read(path)])


def _below(folder: Path, around: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Files and folders at any depth, without hidden ones; links are followed, but not to a folder around them."""
    real = folder.resolve()
    around |= {real, *real.parents}
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:  # none of its files may be left out without a word
        raise StoreAccessError(f"{folder} cannot be listed ({error.strerror}); ask for access") from error
    for path in (folder / name for name in names if not name.startswith(".")):
        if not path.is_dir():
            yield path
        elif not path.is_symlink() or path.resolve() not in around:
            yield path
            yield from _below(path, around)


def _may_be_read(path: Path) -> bool:
    """Whether a path is a file, or a link that leads to none, which is refused later."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def _read_once(root: Path, files: Sequence[Path]) -> list[Path]:
    """The files without those that a linked folder has and that lie below the root without it, too."""
    real = root.resolve()
    folders = {folder: folder.resolve() for folder in {path.parent for path in files}}
    linked = {folder for folder, at in folders.items() if at != real / os.path.relpath(folder, root)}
    direct = {folders[path.parent] / path.name for path in files if path.parent not in linked}
    return [path for path in files if path.parent not in linked or folders[path.parent] / path.name not in direct]


def _fixed_part(pattern: Path) -> Path:
    """The folder of all that a pattern matches."""
    return Path(*takewhile(lambda part: not glob.has_magic(part), pattern.parts))


def _named_folder(places: Sequence[str | Path], paths: Sequence[Path]) -> Path | str:
    """The folder that is the same for all files by what the user gave, not by what is there."""
    if len(places) > 1:
        return os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
    place = Path(places[0])
    if is_pattern(place):
        return _fixed_part(place)
    return place if place.is_dir() else place.parent


def _sources_below(folder: Path) -> list[Path]:
    found = [path for path in _below(folder) if KINDS.get(_suffix(path)) in _SEVERAL and _may_be_read(path)]
    shown = [path for path in found if not any(part.startswith("_") for part in path.relative_to(folder).parts)]
    return sorted(_read_once(folder, shown))


def _files_below(folder: Path) -> list[Path]:
    found = _sources_below(folder)
    if not found:
        raise SourceFormatError(
            f"{folder} holds no .csv, .tsv, .parquet, .feather or .arrow file and is no Zarr store; give a folder of "
            "such files"
        )
    return found


def _check_readable(path: Path) -> None:
    check_link(path)
    if not os.access(path, os.R_OK):
        raise StoreAccessError(f"{path} may not be read by this user; ask for access")


def _check_together(files: Sequence[SourceFile]) -> None:
    """Refuse files that are not of one kind, or of a kind that is one file, or that are there twice."""
    first, before = files[0], set()
    for file in files:
        if file.kind not in _SEVERAL:
            raise ParameterError(
                f"{file}: several files are one source where all are CSV, Parquet or Arrow, and this is {file.kind}; "
                "ingest one, and append the others"
            )
        if file.kind != first.kind:
            raise ParameterError(
                f"{file} is {file.kind}, and {first} is {first.kind}; give files of one kind (a pattern, such as "
                f"*{first.suffix}, takes those of one kind from a folder)"
            )
        real = os.path.realpath(file.path)
        if real in before:
            raise ParameterError(f"{file} is given twice, so that its rows would count twice; leave one out")
        before.add(real)


def check_same_columns(file: SourceFile, names: Sequence[str], first: SourceFile, first_names: Sequence[str]) -> None:
    """Refuse a file whose columns are not those of the first one, in any order.

    Raises
    ------
    SourceFormatError
        It names the file and a column.
    """
    extra = next((name for name in names if name not in set(first_names)), None)
    missing = next((name for name in first_names if name not in set(names)), None)
    found = [
        *([] if extra is None else [f"column {extra!r} is none of {first}"]),
        *([] if missing is None else [f"column {missing!r} of {first} is missing"]),
    ]
    if found:
        raise SourceFormatError(f"{file}: {' and '.join(found)}; give files of the same columns")
