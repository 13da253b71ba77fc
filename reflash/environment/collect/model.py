"""The model by its files: config.json, index, the headers of its shards."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from reflash.engines.layout.fit import sizes
from reflash.engines.serve.weights import INDEX, read_model
from reflash.environment.card import Asked, read_card
from reflash.environment.facts import Model
from reflash.errors import ConfigError

WORDS = (("nvfp4", "nvfp4"), ("fp8", "fp8"), ("mxfp4", "mxfp4"), ("awq", "awq"), ("gptq", "gptq"))


def look_at_model(name: str, revision: str | None = None) -> Model:
    """What is known of a model, a folder or a Hub id; blocks. One that cannot be read is a fact."""
    try:
        facts = read_model(name, revision).facts
    except ConfigError as error:
        return Model(name, error=str(error))
    folder = Path(name).expanduser()
    local = folder.is_dir()
    config = _json(folder / "config.json") if local else {}
    return Model(
        name=name,
        model_type=facts.model_type,
        architectures=tuple(config.get("architectures") or ()),
        context=facts.context,
        quantised=_quantised(config.get("quantization_config") or {}),
        weights=facts.weights,
        cache_per_token=facts.cache_per_token,
        state_per_sequence=facts.state_per_sequence,
        hybrid=facts.hybrid,
        fits_tp=tuple(sizes(facts)),
        broken=tuple(broken_shards(folder)) if local else None,
        template=_has_template(folder) if local else None,
        asks=_asks(folder) if local else (),
    )


def _asks(folder: Path) -> tuple[Asked, ...]:
    """What the card asks for; some makers keep versions in a guide of their own."""
    found: list[Asked] = []
    for path in (folder / "README.md", *sorted(folder.glob("docs/*deploy*guide*.md"))):
        try:
            found += read_card(path.read_text("utf-8", "replace"))
        except OSError:
            continue
    return tuple(found)


def broken_shards(folder: Path) -> list[str]:
    """Shards that the index names and that are missing, and those whose size is not what their header says."""
    index = _json(folder / INDEX)
    named = set(index.get("weight_map", {}).values()) if index else set()
    there = {path.name for path in folder.glob("*.safetensors")}
    wrong = [f"{name} is missing" for name in sorted(named - there)]
    if not named and not there:
        wrong.append("there is no *.safetensors")
    return wrong + [f"{name} {why}" for name in sorted(there & (named or there)) if (why := _wrong(folder / name))]


def _wrong(shard: Path) -> str:
    """ "" where a shard is as long as its header says: 8 bytes of length, the header, the tensors."""
    try:
        with shard.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            size = shard.stat().st_size
            if length > size:
                return "is no safetensors file, or is cut in its header"
            header: dict[str, Any] = json.loads(file.read(length))
            ends = [int(t["data_offsets"][1]) for name, t in header.items() if name != "__metadata__"]
    except (OSError, ValueError, struct.error, KeyError, TypeError, IndexError, AttributeError) as error:
        return f"cannot be read ({type(error).__name__})"
    wanted = 8 + length + max(ends, default=0)
    return "" if size == wanted else f"holds {size} bytes, its header says {wanted}"


def _has_template(folder: Path) -> bool:
    return (folder / "chat_template.jinja").is_file() or "chat_template" in _json(folder / "tokenizer_config.json")


def _quantised(config: dict[str, Any]) -> str:
    told = json.dumps(config).lower()
    return next((name for word, name in WORDS if word in told), "other") if config else ""


def _json(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
