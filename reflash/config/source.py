"""Which rows come in."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from reflash.config.addresses import without_user
from reflash.config.base import Frozen


class SourceConfig(Frozen):
    """The set whose answers are made again."""

    path: Annotated[str, AfterValidator(without_user)]
    """A file, a folder, a glob or a Hub id: JSONL (plain, .gz, .zst), JSON array, Parquet, Arrow, `save_to_disk`.
    `owner/name` is a Hub id; a local folder of two parts is written `./owner/name`; `pkg://package/file` is a file
    inside an installed package."""

    split: str | None = None
    """Split of a Hub set or of a DatasetDict folder; needed where there is more than one and none is `train`."""

    revision: str | None = None
    """Revision of a Hub set: branch, tag or commit."""

    limit: int | None = Field(default=None, ge=1, le=2**53)
    """Take only the first so many accepted rows."""

    reasons: tuple[str, ...] = ()
    """Then `path` is the folder of an earlier run: those of its conversations are made again in which a turn was set
    aside for one of these reasons, and what comes out good is put into that run's dataset too."""

    select: str | None = None
    """Take only the rows that this Parquet file names, by id or by position: `reflash audit data` writes one."""
