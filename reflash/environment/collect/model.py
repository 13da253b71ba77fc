"""The model by its files: config.json, index, the headers of its shards, its card."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reflash.engines.layout.fit import sizes
from reflash.engines.layout.model import ModelFacts, model_facts
from reflash.engines.serve.weights import CONFIG, INDEX
from reflash.environment.card import read_card
from reflash.environment.collect.files import Files, files_of
from reflash.environment.facts import Generation, Model

QUANTISED = ("nvfp4", "fp8", "mxfp4", "awq", "gptq")
COMMIT = re.compile(r"[0-9a-f]{40}")
PARSER = re.compile(r"--reasoning-parser[=\s]+([\w.-]+)")


def look_at_model(name: str, revision: str | None = None, online: bool = False) -> Model:
    """What is known of a model, a folder or a Hub id; blocks. One that cannot be read is a fact."""
    files = files_of(name, revision, online)
    if files.error:
        return Model(name, error=files.error)
    config = files.read(CONFIG)
    try:
        facts = model_facts(config, _weights(files))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Model(name, error=f"its {CONFIG} does not say its {error}, without which its size is unknown")
    return _model(name, revision, files, config, facts)


def _model(name: str, revision: str | None, files: Files, config: Mapping[str, Any], facts: ModelFacts) -> Model:
    folder = files.folder or Path()
    texts = list(_texts(folder))
    return Model(
        name=name,
        folder=str(folder),
        revision=files.commit,
        pinned=None if files.local else bool(COMMIT.fullmatch(revision or "")),
        newest=files.newest,
        model_type=facts.model_type,
        architectures=tuple(config.get("architectures") or ()),
        context=facts.context,
        quantised=_quantised(config.get("quantization_config") or {}),
        weights=facts.weights,
        cache_per_token=facts.cache_per_token,
        state_per_sequence=facts.state_per_sequence,
        hybrid=facts.hybrid,
        fits_tp=tuple(sizes(facts)),
        broken=_broken(files),
        to_fetch=_to_fetch(files),
        template=files.has("chat_template.jinja") or "chat_template" in files.read("tokenizer_config.json"),
        asks=tuple(asked for text in texts for asked in read_card(text)),
        parsers=tuple(dict.fromkeys(found for text in texts for found in PARSER.findall(text))),
        generation=_generation(files),
    )


def _texts(folder: Path) -> Iterator[str]:
    """The card; some makers keep versions in a guide of their own."""
    for path in (folder / "README.md", *sorted(folder.glob("docs/*deploy*guide*.md"))):
        try:
            yield path.read_text("utf-8", "replace")
        except OSError:
            continue


def _weights(files: Files) -> int | None:
    """By the index, else by the files that an engine loads: some repositories hold them twice."""
    if total := (files.read(INDEX).get("metadata") or {}).get("total_size"):
        return int(total)
    there = files.sizes
    if files.local and files.folder is not None:
        there = {path.name: path.stat().st_size for path in files.folder.glob("*.safetensors")}
    return sum(size for name, size in (there or {}).items() if _is_shard(name)) or None


def _is_shard(name: str) -> bool:
    return name.startswith("model") and name.endswith(".safetensors")


def _broken(files: Files) -> tuple[str, ...] | None:
    """None for a model of the Hub of which no shard is here yet; those that it lacks are still to be fetched."""
    folder = files.folder or Path()
    if files.local:
        return tuple(broken_shards(folder))
    there = sorted(path.name for path in folder.glob("*.safetensors") if _is_shard(path.name))
    return tuple(f"{name} {why}" for name in there if (why := _wrong(folder / name))) if there else None


def _to_fetch(files: Files) -> int:
    """Bytes of shards that the Hub has and that are not here."""
    if files.local or files.sizes is None:
        return 0
    return sum(size for name, size in files.sizes.items() if _is_shard(name) and not files.has(name))


def _generation(files: Files) -> Generation | None:
    told = files.read("generation_config.json")
    if not told:
        return None
    stops = told.get("eos_token_id")
    ids = stops if isinstance(stops, list) else [] if stops is None else [stops]
    given = {name: told[name] for name in ("temperature", "top_p", "top_k") if isinstance(told.get(name), int | float)}
    return Generation(tuple(i for i in ids if isinstance(i, int)), given)


def broken_shards(folder: Path) -> list[str]:
    """Shards that the index names and that are missing, and those whose size is not what their header says."""
    index = Files(folder, True).read(INDEX)
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


def _quantised(config: Mapping[str, Any]) -> str:
    told = json.dumps(config).lower()
    return next((name for name in QUANTISED if name in told), "other") if config else ""
