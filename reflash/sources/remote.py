"""A source in an object store: copied to this machine once, since what reads rows reads files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from reflash.errors import ConfigError, SourceAbsent, SourceError, StoreError
from reflash.printable import printable
from reflash.sources.columns import ArrowPart, ParquetPart
from reflash.sources.raw import BrokenPart, Part
from reflash.sources.textfile import TextPart
from reflash.store.objects import Found, Store, open_store

_TAG = ".tag-"  # a hidden file beside each copy says which object it is of


def fetched(url: str) -> Path:
    """A copy of an object, or of every object under a folder, made again where the store holds another one.

    Raises SourceError naming the URL.
    """
    if any(mark in url for mark in "*?["):
        raise SourceError(f"{url}: a pattern cannot be looked for in an object store; name one object, or a folder")
    folder, _, name = url.rstrip("/").rpartition("/")
    if folder.endswith(":/") or not name:
        raise SourceError(f"{url}: a whole bucket is no source; name an object or a folder in it")
    root = _cache() / hashlib.blake2b(url.rstrip("/").encode(), digest_size=12).hexdigest()
    try:
        store = open_store(folder)
        one = None if url.endswith("/") else store.find(name)
        found = [one] if one else store.under(name)
        if not found:
            raise SourceAbsent(f"{url}: no such object or folder")
        for each in found:
            _copy(store, each, root)
        if not one:
            _drop_others(root, {each.name for each in found})
    except (StoreError, ConfigError) as error:
        raise error if isinstance(error, SourceError) else SourceError(f"{url}: cannot be read: {error}") from error
    except OSError as error:
        raise SourceError(f"{url}: no copy of it can be written to {root} ({error.strerror})") from error
    return root / name


def as_named(parts: list[Part], copy: Path, url: str) -> list[Part]:
    """The parts of a copy under the names that the store has for them."""
    return [_named(part, lambda name: name.replace(printable(str(copy), 4096), url.rstrip("/"))) for part in parts]


def _named(part: Part, name: Callable[[str], str]) -> Part:
    if isinstance(part, BrokenPart):
        return BrokenPart(name(part.file), name(part.why))
    if isinstance(part, TextPart | ParquetPart | ArrowPart):
        return replace(part, file=name(part.file))
    return part


def _copy(store: Store, found: Found, root: Path) -> None:
    path = root / found.name
    tag = path.with_name(f"{_TAG}{path.name}")
    told = f"{found.tag} {found.size}"
    if path.is_file() and path.stat().st_size == found.size and tag.is_file() and tag.read_text() == told:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    making = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        with making.open("wb") as handle:
            handle.writelines(store.chunks(found.name))
        if making.stat().st_size != found.size:
            raise StoreError(f"{store.where(found.name)} changed while it was read; give the command again")
        tag.unlink(missing_ok=True)
        making.replace(path)
        tag.write_text(told)
    finally:
        making.unlink(missing_ok=True)


def _drop_others(root: Path, names: set[str]) -> None:
    """Copies of objects that the store no longer holds."""
    for path in root.rglob("*"):
        if path.is_file() and not path.name.startswith(".") and path.relative_to(root).as_posix() not in names:
            path.unlink()


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "reflash" / "sources"
