"""A model's config.json and the size of its weights: from its folder, or from the Hub."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reflash.engines.layout.model import ModelFacts, model_facts
from reflash.errors import ConfigError

CONFIG, INDEX = "config.json", "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Model:
    """A model as the config names it."""

    name: str
    local: bool
    facts: ModelFacts


def read_model(name: str, revision: str | None) -> Model:
    """What is known of a model before it is loaded; blocks. Raises ConfigError where it is not there."""
    folder = Path(name).expanduser()
    local = folder.is_dir()
    if not local and (name.startswith((".", "/", "~")) or name.count("/") != 1):
        raise ConfigError(f"engine.model: there is no folder {name}, and it is no Hub id (owner/name)")
    config, weights = _of_folder(folder) if local else _of_hub(name, revision)
    try:
        return Model(name, local, model_facts(config, weights))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"engine.model: {CONFIG} of {name} does not say its {error}, without which its size is unknown; start the "
            "server yourself and name it with `kind: endpoint`"
        ) from error


def _of_folder(folder: Path) -> tuple[dict[str, Any], int | None]:
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"engine.model: {folder} holds no readable {CONFIG} ({error})") from error
    index = folder / INDEX
    if index.is_file():
        return config, _total(index)
    return config, _sum((path.name, path.stat().st_size) for path in folder.glob("*.safetensors"))


def _of_hub(name: str, revision: str | None) -> tuple[dict[str, Any], int | None]:
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        config = json.loads(Path(hf_hub_download(name, CONFIG, revision=revision)).read_bytes())
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise ConfigError(
            f"engine.model: {name} is no folder, and its {CONFIG} cannot be had from the Hub ({str(error)[:200]})"
        ) from error
    try:
        files = HfApi().model_info(name, revision=revision, files_metadata=True).siblings or []
    except (HfHubHTTPError, OSError):  # no network, but a cache: the config says enough
        return config, None
    return config, _sum((file.rfilename, file.size or 0) for file in files)


def _total(index: Path) -> int | None:
    try:
        return int(json.loads(index.read_bytes())["metadata"]["total_size"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sum(files: Iterable[tuple[str, int]]) -> int | None:
    """Of the weights that an engine loads: some folders hold them twice, in their maker's own form."""
    kept = (size for name, size in files if name.startswith("model") and name.endswith(".safetensors"))
    return sum(kept) or None
