"""What lies in a folder: files that can be read to their end, and what is passed over."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from reflash.errors import SourceError
from reflash.printable import printable

_RUN = "manifest.json"
_RUN_FOLDERS = ("plan", "parts")
_NAMED = 5  # of what is passed over
_PATH = 4096  # characters: as long as a path may be
_ODD = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a folder or a pattern gave."""

    files: list[Path] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)  # what was passed over, and what it is

    def take(self, path: Path, name: str) -> None:
        """Keep a file, or note why not."""
        if (what := oddity(path)) is None:
            self.files.append(path)
        else:
            self.passed.append(f"{name} ({what})")

    def notes(self, where: str) -> list[str]:
        """What was passed over, as one line; none where nothing was."""
        if not self.passed:
            return []
        more = f" and {len(self.passed) - _NAMED:,} more" if len(self.passed) > _NAMED else ""
        return [f"{where}: passed over: {', '.join(sorted(self.passed)[:_NAMED])}{more}"]


def shown(path: Path | str) -> str:
    """A path as people can read it: the bytes of a name need not be text."""
    return printable(str(path), _PATH)


def oddity(path: Path) -> str | None:
    """What a path is if not a regular file, links followed: reading it may never end. None where nothing is there."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return None  # a link to nothing, say: opening it tells why
    return next((what for test, what in _ODD if test(mode)), None)


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run: its parts are no source."""
    return (folder / _RUN).is_file() and any((folder / name).is_dir() for name in _RUN_FOLDERS)


def walk(root: Path) -> Found:
    """Every file under a folder in a fixed order, hidden ones aside. Raises SourceError where a folder is locked."""
    found = Found()
    every = [(path.relative_to(root).as_posix(), path) for path in _files(root, found)]
    for inside, path in sorted(every):
        found.take(path, shown(inside))
    return found


def _files(root: Path, found: Found) -> Iterator[Path]:
    for folder, inner, files in os.walk(root, onerror=_locked):
        inner[:] = [name for name in inner if not name.startswith((".", "__"))]
        for name in inner:
            path = Path(folder, name)
            inside = shown(path.relative_to(root))
            if path.is_symlink():  # it may lead back to a folder above
                found.passed.append(f"{inside} (a linked folder)")
            elif is_run(path):
                found.passed.append(f"{inside} (a run of Reflash)")
        inner[:] = [name for name in inner if not is_run(Path(folder, name))]
        yield from (Path(folder, name) for name in files if not name.startswith("."))


def _locked(error: OSError) -> NoReturn:
    raise SourceError(f"{shown(error.filename)}: unreadable ({error.strerror}); make it readable") from error
