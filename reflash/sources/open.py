"""Where to begin: `open_source` finds the files, `rows` reads them as conversations."""

from __future__ import annotations

from reflash.config.paths import local_path
from reflash.config.source import SourceConfig
from reflash.errors import ConfigError, SourceError
from reflash.sources.hub import hub_parts, hub_reference
from reflash.sources.locate import is_pattern, locate
from reflash.sources.rows import rows
from reflash.sources.source import Source

__all__ = ["Source", "open_source", "rows"]


def open_source(config: SourceConfig) -> Source:
    """Find the files of a source; nothing but names, footers and first bytes is read.

    Raises SourceError naming the file, the folder or the Hub id, and the remedy.
    """
    reference = hub_reference(config.path)
    if reference is not None:
        parts, notes = hub_parts(reference, config)
        return Source(config.path, tuple(parts), tuple(notes), config.limit)
    try:
        path = local_path(config.path)
    except ConfigError as error:
        raise SourceError(str(error)) from error
    if not path.exists() and not is_pattern(path):
        raise SourceError(f"{config.path}: no such file or folder")
    found, notes = locate(path, config.split)
    return Source(config.path, tuple(found), tuple(notes), config.limit)
