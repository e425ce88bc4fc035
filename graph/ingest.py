"""Bringing what a person names into a collection: found, compared, read, and put in whole.

One that cannot be read is told by name and stops nothing. Interrupted, what is done stays, and the next time goes on.
"""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from graph.fetching import Gone, Limits, Resolve, fetch, is_url, resolve
from graph.reader import Reader
from graph.reading import NotRead
from graph.sources import found_at
from memory.documents import Documents, File
from memory.values import is_storable

Told = Callable[[float, int, int], None]
"""(files done, with the part of the one under way; files in all; passages written)."""


@dataclass(kw_only=True)
class Report:
    """What came of it, by names. `failed`, `skipped` and `notes` come with the reason."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: int = 0
    removed: list[str] = field(default_factory=list)
    passages: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


class Intake:
    """Brings things into one collection; `report` tells how far it came, also when it was interrupted."""

    def __init__(
        self,
        docs: Documents,
        *,
        limits: Limits | None = None,
        told: Told = lambda done, total, passages: None,
        resolve: Resolve = resolve,
        reader: Reader | None = None,
    ) -> None:
        self.docs, self.limits, self.told, self.resolve = docs, limits or Limits(), told, resolve
        self.reader = reader or Reader()
        self.report = Report()
        self.at = self.total = 0
        self.gone: set[str] = set()

    def add(self, named: Iterable[str]) -> Report:
        """Bring in what is named: files, folders with all that can be read in them, glob patterns, addresses."""
        self.bring_in(self.found(named))
        return self.report

    def refresh(self) -> Report:
        """Look again at all that was named before: what is new or changed comes in, what has vanished goes."""
        entries = list(self.docs.entries())
        roots = [one for one in dict.fromkeys(entry.root for entry in entries) if is_url(one) or Path(one).exists()]
        files = self.found(roots)
        self.bring_in(files)
        there = {file.source for file in files} - self.gone
        gone = [entry for entry in entries if entry.source not in there]
        self.docs.remove(gone)
        self.report.removed += [entry.name for entry in gone]
        return self.report

    def found(self, named: Iterable[str]) -> list[File]:
        """Find all sources, each once."""
        told = {"failed": self.report.failed, "skipped": self.report.skipped}
        found = (file for name in named for file in found_at(name, **told))
        return list({file.source: file for file in found}.values())

    def bring_in(self, files: Sequence[File]) -> None:
        """Bring in one file after the other."""
        known = self.docs.get([file.source for file in files])
        with self.reader:
            for n, (file, old) in enumerate(zip(files, known, strict=True)):
                self.at, self.total = n, len(files)
                self.tell()
                try:
                    self.bring_one(file, old)
                except NotRead as error:
                    self.report.failed.append((file.name, str(error)))
                    if isinstance(error, Gone):
                        self.gone.add(file.source)
        self.at = len(files)
        self.tell()

    def tell(self, done: int = 0, total: int = 1) -> None:
        """Tell how far it came, with the passages of the file under way."""
        self.told(self.at + done / max(total, 1), self.total, self.report.passages + done)

    def bring_one(self, file: File, old: File | None) -> None:
        """Compare one file with what is in, and replace that if it differs. Raises NotRead."""
        if not is_storable(file.source):
            raise NotRead("has a name that is not UTF-8; rename it")
        if old and file.root == file.source != old.root:  # named by itself now, with its folder before
            file = replace(file, name=old.name, root=old.root)
        if is_url(file.source):
            page = fetch(file.source, self.limits, resolve=self.resolve)
            with tempfile.TemporaryDirectory(prefix="palimpsest-") as room:
                copy = Path(room) / "page"
                copy.write_bytes(page.data)
                self.replace(replace(file, size=len(page.data)), copy, old, declared=page.declared)
            return
        try:
            found = Path(file.source).lstat()
        except OSError as error:
            raise NotRead(f"cannot be read: {error.strerror}") from error
        file = replace(file, size=found.st_size, mtime_ns=found.st_mtime_ns)
        if old and old.rev and (old.size, old.mtime_ns) == (file.size, file.mtime_ns):
            self.keep(file, old)
        else:
            self.replace(file, Path(file.source), old)

    def replace(self, file: File, path: Path, old: File | None, *, declared: str = "") -> None:
        """Read a file and put it in, unless it holds what it held."""
        rev, found = self.reader.read(path, name=file.name, declared=declared, known=old.rev if old else "")
        if found is None:
            assert old
            return self.keep(file, old)
        self.report.passages += self.docs.put(file, found.document, rev=rev, told=self.tell).passages
        self.report.notes += [(file.name, note) for note in found.notes]
        (self.report.changed if old and old.rev else self.report.added).append(file.name)

    def keep(self, file: File, old: File) -> None:
        """Leave what is in; note if it is called, dated or sized otherwise, and clear what a killed writer left."""
        now = replace(old, name=file.name, root=file.root, size=file.size, mtime_ns=file.mtime_ns)
        if now != old or old.pending != ("", 0):
            self.docs.note(now)
        self.report.unchanged += 1
