"""A model's small files: from its folder, or from the Hub, the cache first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reflash.engines.serve.weights import CONFIG, INDEX

WANTED = (
    CONFIG,
    INDEX,
    "README.md",
    "generation_config.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)


@dataclass(frozen=True, slots=True)
class Files:
    """What there is of a model on this machine now, and what the Hub says beside it."""

    folder: Path | None  # where its files lie; None where not even config.json could be had
    local: bool  # it is a folder of the user's
    commit: str = ""  # of the Hub, of what lies here
    newest: str = ""  # commit that the asked revision is at now, "" where nobody could be asked
    sizes: Mapping[str, int] | None = None  # bytes of all its files on the Hub
    error: str = ""

    def read(self, name: str) -> dict[str, Any]:
        """A file of JSON; empty where it is not there or none."""
        try:
            told = json.loads((self.folder or Path()).joinpath(name).read_bytes()) if self.folder else {}
        except (OSError, ValueError):
            return {}
        return told if isinstance(told, dict) else {}

    def has(self, name: str) -> bool:
        """Whether a file is here."""
        return self.folder is not None and (self.folder / name).is_file()


def files_of(name: str, revision: str | None, online: bool) -> Files:
    """The files of a model, a folder or a Hub id; blocks. `online`: the Hub may be asked for what the cache lacks."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return Files(folder, True)
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        return Files(None, False, error=f"there is no folder {name}, and it is no Hub id (owner/name)")
    return _of_hub(name, revision, online)


def _of_hub(name: str, revision: str | None, online: bool) -> Files:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    newest, sizes, why = "", None, "the cache lacks it, and the Hub is not asked"
    if online:
        try:
            told = HfApi().model_info(name, revision=revision, files_metadata=True)
            newest, sizes = told.sha or "", {s.rfilename: s.size or 0 for s in told.siblings or ()}
        except (HfHubHTTPError, HFValidationError, OSError) as error:
            why = str(error).strip().splitlines()[0][:200]
    wanted = [file for file in WANTED if sizes is None or file in sizes or file == CONFIG]
    got = {file: path for file in wanted if (path := _file(name, file, revision, online)) is not None}
    if CONFIG not in got:
        return Files(None, False, "", newest, sizes, f"{CONFIG} of {name} cannot be had from the Hub ({why})")
    return Files(got[CONFIG].parent, False, got[CONFIG].parent.name, newest, sizes)


def _file(name: str, file: str, revision: str | None, online: bool) -> Path | None:
    """Where a file of a Hub repository lies in the cache; None where it is in neither."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError

    try:
        there = try_to_load_from_cache(name, file, revision=revision)
        if isinstance(there, str):
            return Path(there)
        if there is not None or not online:  # it is known that there is none
            return None
        return Path(hf_hub_download(name, file, revision=revision))
    except (EntryNotFoundError, HfHubHTTPError, HFValidationError, OSError, ValueError):
        return None
