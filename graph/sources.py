"""What a person names to bring in: files, folders, patterns and addresses; nothing outside of it is ever read."""

import glob
import os
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from graph.fetching import is_url
from graph.reading import READ_IN_FOLDERS, suffix_of
from memory.documents import File
from memory.text import clean

PASSED_BY = {"__pycache__", "node_modules"}
HIDDEN, STRANGE = "is hidden, or made by a program", "is of a kind that is not read"
LEADS_OUT = "is a link that leads out of the folder"

Told = list[tuple[str, str]]
"""Names that are not brought in, each with why."""


def found_at(named: str, *, failed: Told, skipped: Told) -> Iterator[File]:
    """Find what a name means. A link that is named itself is followed; those inside a folder are not."""
    if is_url(named):
        yield File(source=named, name=named, root=named)
        return
    path = Path(named).expanduser()
    is_pattern = glob.has_magic(named) and not os.path.lexists(path)
    paths = [Path(one) for one in sorted(glob.glob(str(path), recursive=True))] if is_pattern else [path]  # noqa: PTH207  # patterns of any form
    base = real(Path(*takewhile(lambda part: not glob.has_magic(part), path.parts)))  # where a pattern starts from
    for one in paths:
        root = real(one)
        if is_pattern and not root.is_relative_to(base):
            skipped.append((str(one), LEADS_OUT))
        elif root.is_dir():
            yield from found_in(root, failed=failed, skipped=skipped)
        elif root.exists():
            yield File(source=str(root), name=shown(root.name), root=str(root))
        else:
            failed.append((named, "is not there"))
    if not paths:
        failed.append((named, "matches no file"))


def real(path: Path) -> Path:
    """Return where a path leads in the end; a link to itself leads nowhere else."""
    return Path(os.path.realpath(path))


def found_in(root: Path, *, failed: Told, skipped: Told) -> Iterator[File]:
    """Find what can be read in a folder and those in it."""

    def not_listed(error: OSError) -> None:
        failed.append((called(Path(error.filename), root), f"cannot be listed: {error.strerror}"))

    for folder, folders, files in os.walk(root, onerror=not_listed):
        here = Path(folder)
        for name in sorted(folders):
            if reason := why_not(here / name, root):
                folders.remove(name)
                skipped.append((called(here / name, root), reason))
        folders[:] = sorted(name for name in folders if not (here / name).is_symlink())
        for name in sorted(files):
            path = here / name
            reason = why_not(path, root) or ("" if suffix_of(name) in READ_IN_FOLDERS else STRANGE)
            if reason:
                skipped.append((called(path, root), reason))
            elif not path.is_symlink():
                yield File(source=str(path), name=called(path, root), root=str(root))


def why_not(path: Path, root: Path) -> str:
    """Say why something in a folder is passed by; a link to what lies in the folder too is no loss, and no reason."""
    if path.is_symlink() and not real(path).is_relative_to(root):
        return LEADS_OUT
    return HIDDEN if path.name.startswith(".") or path.name in PASSED_BY else ""


def called(path: Path, root: Path) -> str:
    """Name a file by its folder and its place in it, on one line that no terminal takes for orders."""
    return shown(path.relative_to(root.parent).as_posix())


def shown(text: str) -> str:
    """Write a name as people see it."""
    return " ".join(clean(text).split())
