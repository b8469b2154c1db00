"""Rules for replacing: only a whole output of the same kind is replaced, and only files that we wrote are removed.

A mistyped path must not cost anybody's files: not a folder that only looks like ours, not one of our folders in which
somebody stores other files, and not the target of a link or a mount.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from streamkernel.atomic import parsed_json
from streamkernel.blobs import Generations, normalised, parent_of, translated_os_errors
from streamkernel.errors import (
    CorruptMetadataError,
    ParameterError,
    StoreAccessError,
    StoreError,
    StoreExistsError,
    warn_user,
)
from streamkernel.outputs.complete import (
    FACTOR_PARTS,
    WORDS,
    CompleteOutput,
    Kind,
    declared_kind,
    is_of_factor,
    read_complete,
)
from streamkernel.outputs.files import mounted_at, read_small
from streamkernel.wording import switch

# Checkpoints and unfinished folders lie beside an output; their names are its name plus up to this many bytes.
_MOST_NAME_BYTES = 255 - 32


def check_output(target: str | Path, kind: Kind, *, overwrite: bool) -> None:
    """Refuse a path or URL that holds something that may not be replaced; nothing is changed.

    Raises
    ------
    StoreExistsError
        Something is there and `overwrite` is false, or it is no whole output of this kind, or there is something in it
        that we did not write, or what is not there yet would be inside of another output.
    StoreAccessError
        It belongs to another user, in a folder where only its owner may replace it.
    """
    if isinstance(target, str):
        _check_url(target, kind, overwrite)
        return
    check_name_length(target)
    if not os.path.lexists(target):
        _refuse_inside(target)
        return
    mounts = mounted_at()
    if str(target) in mounts:
        raise StoreExistsError(f"{target} is a mount point, which cannot be replaced; choose a path in it")
    if is_empty_folder(target):
        _refuse_inside(target)
        return
    if not overwrite:
        raise StoreExistsError(f"{target} exists; choose another path or {switch('overwrite')}")
    if target.is_symlink():
        raise StoreExistsError(
            f"{target} is a symbolic link to {os.readlink(target)}, which is not followed to be overwritten; give that "
            "path, or remove it yourself"
        )
    _refuse_sticky(target)
    whole = _check_kind(str(target), lambda name: read_small(target / name), kind)
    for key in _foreign_keys(target, whole, mounts):
        raise _not_ours(str(target), key)


def check_target(path: str | os.PathLike[str], *, overwrite: bool = False, kind: Kind = "model") -> str | Path:
    """Refuse an output path or URL before any work starts; return it as an absolute path, or as text.

    Parameters
    ----------
    path
        Path or URL of the output. Missing parent folders are no error; nothing is created here. The first write finds
        out whether a URL may be written.
    overwrite
        Whether an existing output may be replaced. An empty folder may always be replaced.
    kind
        Kind of the output. Only a whole output of the same kind, without any file that we did not write, is ever
        replaced, so that a mistyped path costs no data.

    Raises
    ------
    StoreExistsError
        Something exists there and `overwrite` is false, or it may not be replaced.
    StoreAccessError
        The parent folder may not be written.
    """
    target = normalised(path)
    if isinstance(target, str):
        parent_of(target)  # not a whole bucket
        check_output(target, kind, overwrite=overwrite)
        return target
    with translated_os_errors(target, "checking"):
        check_output(target, kind, overwrite=overwrite)
        parent = next(folder for folder in target.parents if folder.exists())
        if not parent.is_dir():
            raise StoreError(f"{parent} is a file, so {target} cannot be made in it; choose another path")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise StoreAccessError(f"no permission to write in {parent}; choose another path or ask its owner")
    return target


def _refuse_sticky(target: Path) -> None:
    """Refuse what another user has in a folder such as /tmp, where users rename and remove nothing of each other."""
    folder, user = os.stat(target.parent), os.geteuid()
    with suppress(FileNotFoundError):
        owner = os.lstat(target).st_uid
        if folder.st_mode & stat.S_ISVTX and user not in (0, owner, folder.st_uid):
            raise StoreAccessError(
                f"{target} belongs to another user, and {target.parent} lets only its owner replace it (sticky bit); "
                "choose another path or ask its owner"
            )


def check_new_file(target: str | Path) -> None:
    """Refuse an absolute path or a URL of one file to be written, for its name or for what is around it.

    Raises
    ------
    ParameterError
        The name is too long for the names of the folders beside it.
    StoreExistsError
        There is no such file yet, and it would be inside of an output of ours, or of a Zarr array.
    StoreAccessError
        The file belongs to another user, in a folder where only its owner may replace it.
    """
    if isinstance(target, Path):
        check_name_length(target)
        if os.path.lexists(target):
            _refuse_sticky(target)
            return
    _refuse_inside(target)


def check_name_length(target: Path) -> None:
    """Raise `ParameterError` where the names of what is built beside an output would be too long."""
    size = len(os.fsencode(target.name))
    if size > _MOST_NAME_BYTES:
        raise ParameterError(
            f"the name of {str(target)[:100]}... has {size} bytes, and those of outputs {_MOST_NAME_BYTES} at most, as "
            "what is built beside them is named after them; choose a shorter one"
        )


def _check_kind(where: str, read: Callable[[str], bytes | None], kind: Kind) -> CompleteOutput:
    """The whole output at a place; raises unless it is of this kind."""
    whole = read_complete(read)
    if whole is not None and whole.kind == kind:
        return whole
    found = whole.kind if whole is not None else declared_kind(read)
    if kind != "table":
        others = "" if whole is None else f" but {WORDS[whole.kind]}"
        parts = " or not a whole one" if found == kind else others
        raise StoreExistsError(
            f"{where} exists and is not {WORDS[kind]}{parts}; remove it yourself or choose another path"
        )
    if found not in (None, "table"):
        raise StoreExistsError(f"{where} is {WORDS[found]}, not a table; remove it yourself or choose another path")
    what = "a Zarr store" if read("zarr.json") is None else "a whole table that streamkernel wrote"
    raise StoreExistsError(f"{where} is not {what} and is not overwritten; remove it yourself or choose another path")


def _not_ours(where: str, key: str) -> StoreExistsError:
    shown = key if key.isprintable() else ascii(key)
    return StoreExistsError(
        f"{where} is not overwritten, as it holds {shown}, which streamkernel did not write; move that away, or "
        "choose another path"
    )


def _check_url(url: str, kind: Kind, overwrite: bool) -> None:
    place = Generations(url)
    if place.taken():
        _check_replaced(place, kind, overwrite)
    else:
        _refuse_inside(url)
    place.blobs.prove_create()


def _check_replaced(place: Generations, kind: Kind, overwrite: bool) -> None:
    url = place.location
    if not overwrite:
        raise StoreExistsError(f"{url} exists; choose another path or {switch('overwrite')}")
    generation = place.latest_or_plain()
    whole = _check_kind(url, lambda name: place.blobs.read(generation.prefix + name), kind)
    for key in place.foreign_keys(whole.owns):
        raise _not_ours(url, key)


def _refuse_inside(target: str | Path) -> None:
    """Refuse a path or URL that lies in an output of ours, whole or not, or in a Zarr array of anybody.

    What is made there would be a foreign key of the outer output, which makes that one's replacement fail.
    """
    part = is_of_factor(str(target).rpartition("/")[2])
    places: Sequence[str | Path] = target.parents if isinstance(target, Path) else _prefixes(target)
    for depth, around in enumerate(places):
        found = _words_for(around)
        # A factor's folder is no Zarr group itself. Of the nearest folder only: each costs a request at a URL.
        if depth == 0 and found is None and not part and _is_factor(around):
            found = "a factor"
        if found is not None:
            raise StoreExistsError(
                f"{target} cannot be made there: {around} is {found}, and no output is made inside of another one; "
                "choose a path beside it"
            )


def _prefixes(url: str) -> list[str]:
    """What is around a URL, the nearest first; a bucket is no output."""
    found: list[str] = []
    try:
        while True:
            url, _ = parent_of(url)
            parent_of(url)
            found.append(url)
    except ParameterError:
        return found


def _is_factor(place: str | Path) -> bool:
    """Whether a whole factor's basis is in a place."""
    basis = place / FACTOR_PARTS[0] if isinstance(place, Path) else f"{place}/{FACTOR_PARTS[0]}"
    whole = read_complete(lambda name: _content(basis, name))
    return whole is not None and whole.kind == "factor"


def _words_for(place: str | Path) -> str | None:
    content = _content(place, "zarr.json")
    if content is None:
        return None
    kind = declared_kind(lambda name: content)
    if kind is not None:
        return WORDS[kind]
    try:
        return "a Zarr array" if parsed_json(content)["node_type"] == "array" else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _content(place: str | Path, name: str) -> bytes | None:
    try:
        if isinstance(place, Path):
            return read_small(place / name)
        return Generations(place).read(name)
    except (PermissionError, CorruptMetadataError):
        return None  # whoever may write to a place need not be allowed to look around it


def plain_copy(place: Generations) -> Callable[[str], bool] | None:
    """A function that recognises the keys of a plain copy of an output at the URL itself; None if there is no copy."""
    whole = read_complete(place.blobs.read)
    return None if whole is None else whole.owns


def whole_in(folder: Path) -> CompleteOutput | None:
    """The whole output in a folder; None if there is none."""
    return read_complete(lambda name: read_small(folder / name))


def is_empty_folder(path: Path) -> bool:
    """Whether this is an empty folder, and not a link to one."""
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _foreign_keys(folder: Path, whole: CompleteOutput, mounts: frozenset[str], prefix: str = "") -> Iterator[str]:
    """Keys in an output's folder that are not ours: other names, links, other kinds of files, mounts."""
    with os.scandir(folder / prefix) as entries:
        for entry in entries:
            key, mode = prefix + entry.name, entry.stat(follow_symlinks=False).st_mode
            if str(folder / key) in mounts:
                yield f"{key} (a mount)"
            elif stat.S_ISDIR(mode) and whole.owns_folder(key):
                yield from _foreign_keys(folder, whole, mounts, f"{key}/")
            elif not (stat.S_ISREG(mode) and whole.owns(key)):
                yield f"{key} (a link)" if stat.S_ISLNK(mode) else key


def is_only_ours(folder: Path) -> bool:
    """Whether there is a whole output in a folder, and nothing else."""
    whole = whole_in(folder)
    return whole is not None and next(_foreign_keys(folder, whole, mounted_at()), None) is None


def remove_former(folder: Path, successor: Path | None = None) -> None:
    """Remove an output that its successor has replaced: the files that we wrote, and files that the successor has too.

    Any other files in it, and what this user may not remove, are moved to a name beside it, which a warning gives.
    """
    whole = whole_in(folder)
    mounts = mounted_at()
    if whole is not None and next(_foreign_keys(folder, whole, mounts), None) is None:
        shutil.rmtree(folder, ignore_errors=True)
        if os.path.lexists(folder):
            # Folders of another user: this one may rename them, but not remove what is in them.
            _set_aside(folder, successor)
        return
    for path, folders, files, descriptor in os.fwalk(folder, topdown=False, follow_symlinks=False):
        here = os.path.relpath(path, folder)
        prefix = "" if here == "." else f"{here}/"
        if any(path == mount or path.startswith(f"{mount}/") for mount in mounts if mount.startswith(str(folder))):
            continue
        for name in [*files, *(name for name in folders if os.path.islink(os.path.join(path, name)))]:
            key = prefix + name
            if (whole is not None and whole.owns(key)) or (successor is not None and _same(folder, successor, key)):
                # The successor has this content already, so a failure to remove it here is harmless.
                with suppress(OSError):
                    os.unlink(name, dir_fd=descriptor)
        for name in folders:
            with suppress(OSError):
                os.rmdir(name, dir_fd=descriptor)
    with suppress(OSError):
        os.rmdir(folder)
    if os.path.lexists(folder):
        _set_aside(folder, successor)


def _set_aside(folder: Path, successor: Path | None) -> None:
    # A name that `remove_stray_partials` does not match; with something in it that is not ours it stays.
    aside = folder.with_suffix(".former")
    os.rename(folder, aside)
    warn_user(
        f"{successor or folder} was replaced, and what was in it that streamkernel did not write, or may not remove, "
        f"is in {aside} ({', '.join(sorted(os.listdir(aside))[:3])}); move it away"
    )


def _same(former: Path, successor: Path, key: str) -> bool:
    """Whether two folders have the same file under a key: the same inode, or a copy."""
    try:
        one, other = os.lstat(former / key), os.lstat(successor / key)
    except OSError:
        return False
    described = [(status.st_mode, status.st_size, status.st_mtime_ns) for status in (one, other)]
    return os.path.samestat(one, other) or described[0] == described[1]
