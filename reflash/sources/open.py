"""Where to begin: `open_source` finds the files, `rows` reads them as conversations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reflash.config.paths import local_path
from reflash.config.source import SourceConfig
from reflash.errors import ConfigError, SourceAbsent, SourceError
from reflash.sources.hub import hub_parts, hub_reference
from reflash.sources.locate import is_pattern, locate
from reflash.sources.raw import BrokenPart, Part
from reflash.sources.remote import as_named, fetched
from reflash.sources.rows import rows
from reflash.sources.source import Source
from reflash.sources.walk import shown
from reflash.store.remote import is_remote

__all__ = ["Source", "open_source", "open_sources", "rows"]


def open_source(config: SourceConfig, *, tolerant: bool = False) -> Source:
    """Find the files of a source; nothing but names, footers and first bytes is read.

    Where it is `tolerant`, one of several files that cannot be opened is a part whose reading raises. Raises
    SourceError naming the file, the folder or the Hub id, and the remedy.
    """
    reference = hub_reference(config.path)
    if reference is not None:
        parts, notes = hub_parts(reference, config)
        return Source(config.path, tuple(parts), tuple(notes), config.limit)
    name = shown(config.path)
    if is_remote(config.path):
        path = fetched(config.path)
        found, notes = locate(path, config.split)
        found = as_named(found, path, config.path)
    else:
        path = _there(config.path, name)
        found, notes = locate(path, config.split)
    for part in found:
        if isinstance(part, BrokenPart) and not tolerant:
            raise SourceError(part.why)
    return Source(name, tuple(found), tuple(notes), config.limit)


def open_sources(configs: Sequence[SourceConfig]) -> Source:
    """Several sources as one, in the order given; one that cannot be found is a part that cannot be read.

    Raises SourceError where none can be found.
    """
    parts: list[Part] = []
    notes: list[str] = []
    faults: list[SourceError] = []
    for config in configs:
        try:
            found = open_source(config, tolerant=True)
        except SourceError as error:
            faults.append(error)
            parts.append(BrokenPart(shown(config.path), str(error)))
        else:
            parts += found.parts
            notes += found.notes
    if len(faults) == len(configs):
        raise faults[0]
    more = f" and {len(configs) - 1:,} more" if len(configs) > 1 else ""
    return Source(f"{shown(configs[0].path)}{more}", tuple(parts), tuple(notes))


def _there(written: str, name: str) -> Path:
    """The path of something that exists, or a pattern. Raises SourceError."""
    if not written.strip():
        raise SourceAbsent("no path is given: it is empty; . is the folder where you are")
    try:
        written.encode()
        path = local_path(written)
        if path.exists() or is_pattern(path):
            return path
    except UnicodeEncodeError as error:
        raise SourceError(f"{name}: its name is not UTF-8; rename it, or name the folder that holds it") from error
    except ConfigError as error:
        raise SourceAbsent(str(error)) from error
    except RuntimeError as error:  # no home of that name
        raise SourceAbsent(f"{name}: no such file or folder; a name that starts with ~ is written ./~") from error
    except OSError as error:  # a name too long, a folder above it locked
        raise SourceError(f"{name}: cannot be looked at ({error.strerror})") from error
    if path.is_symlink():
        raise SourceAbsent(f"{name}: a link to {shown(path.readlink())}, which is not there")
    raise SourceAbsent(f"{name}: no such file or folder{_looked_for(path)}")


def _looked_for(path: Path) -> str:
    """Where a relative path was looked for, and whether the folder that should hold it is there."""
    above = path.absolute().parent
    missing = next((folder for folder in [*reversed(above.parents), above] if not folder.is_dir()), None)
    if missing is not None:
        return f"; there is no folder {shown(missing)}"
    return f"; it was looked for in {shown(above)}"
