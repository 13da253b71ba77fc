"""Where a tokenizer is found, and what else lies beside it: chat template, end marks, special tokens by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from reflash.config.model import ModelConfig
from reflash.config.paths import local_path
from reflash.errors import ConfigError, RenderError
from reflash.render.gguf import gguf_tokenizer, read_gguf

HUB_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.*",
    "generation_config.json",
    "config.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
)
NAMED = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")
GGUF_STOPS = ("eos", "eot", "eom")


@dataclass(frozen=True, slots=True)
class LoadedTokenizer:
    """A tokenizer and what its files say."""

    name: str  # where it came from, as errors name it
    tokenizer: Tokenizer
    digest: str  # hash of the vocabulary's and the template's source
    template: str | None = None  # Jinja
    stop_ids: tuple[int, ...] = ()  # the ids that end generation, as the files list them
    special: Mapping[str, str] = field(default_factory=dict)  # "bos_token" and the like: their text


def load_tokenizer(config: ModelConfig) -> LoadedTokenizer:
    """Find a model's tokenizer: a folder, a tokenizer.json, a `.gguf` file, a file in a package, or a Hub id.

    Raises RenderError that names the place and the remedy.
    """
    name = config.tokenizer or config.name
    try:
        path = local_path(name)
    except ConfigError as error:
        raise RenderError(str(error)) from error
    if path.suffix == ".gguf":
        return _from_gguf(path, name)
    if path.is_dir():
        return _from_folder(path, name)
    if path.is_file():
        return _from_folder(path.parent, name, path.name)
    if path.suffix == ".json" or name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise RenderError(f"{name}: no such file or folder; set model.tokenizer to where the tokenizer is")
    return _from_folder(_downloaded(name, config.revision), name)


def _from_gguf(path: Path, name: str) -> LoadedTokenizer:
    fields = read_gguf(path)
    tokens = fields.get("tokenizer.ggml.tokens", [])
    numbers = {key: fields.get(f"tokenizer.ggml.{key}_token_id") for key in ("bos", "unknown", "padding", *GGUF_STOPS)}
    known = {key: number for key, number in numbers.items() if number is not None and number < len(tokens)}
    names = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
    source = [fields.get(f"tokenizer.{key}") for key in ("ggml.pre", "ggml.tokens", "ggml.token_type", "ggml.merges")]
    template = fields.get("tokenizer.chat_template")
    return LoadedTokenizer(
        name=name,
        tokenizer=gguf_tokenizer(fields, path),
        digest=_hash(json.dumps([source, template]).encode()),
        template=template,
        stop_ids=tuple(known[key] for key in GGUF_STOPS if key in known),
        special={names[key]: tokens[number] for key, number in known.items() if key in names},
    )


def _from_folder(folder: Path, name: str, file: str = "tokenizer.json") -> LoadedTokenizer:
    said = _json(folder / "tokenizer_config.json")
    source = folder / file
    if source.is_file():
        tokenizer, content = _from_json(source), source.read_bytes()
    else:
        tokenizer = _converted(folder, name)
        content = tokenizer.to_str().encode()
    _add_missing(tokenizer, said.get("added_tokens_decoder", {}))
    special = {key: text for key in NAMED if (text := _token_text(said.get(key)))}
    template = _template(folder, said)
    return LoadedTokenizer(
        name=name,
        tokenizer=tokenizer,
        digest=_hash(content, (template or "").encode()),
        template=template,
        stop_ids=_stop_ids(folder, tokenizer, special),
        special=special,
    )


def _from_json(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing more precise
        raise RenderError(f"{path}: not a tokenizer that can be read: {error}") from error


def _converted(folder: Path, name: str) -> Tokenizer:
    """For a folder without tokenizer.json: transformers makes the tokenizer from older files."""
    from reflash.render.sandbox import quiet_transformers

    quiet_transformers()
    from transformers import AutoTokenizer

    try:
        loaded = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    except (OSError, ValueError, ImportError, KeyError, TypeError, AttributeError) as error:
        raise RenderError(
            f"{name}: holds no tokenizer.json, and transformers cannot make one of what it holds ({error}); "
            "set model.tokenizer to a folder that has one"
        ) from error
    backend = getattr(loaded, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise RenderError(f"{name}: its tokenizer has no fast form; set model.tokenizer to a tokenizer.json")
    return backend


def _downloaded(name: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    at = f" at {revision}" if revision else ""
    remedy = (
        "set model.tokenizer to a folder, a tokenizer.json or a .gguf file; for a gated model log in with "
        "`hf auth login` first"
    )
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(HUB_FILES)))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError, ValueError) as error:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RenderError(f"{name}{at}: no tokenizer here, and the Hub gave none ({first_line}); {remedy}") from error


def _template(folder: Path, said: Mapping[str, Any]) -> str | None:
    for file in ("chat_template.jinja", "chat_template.json"):
        if (folder / file).is_file():
            text = (folder / file).read_text(encoding="utf-8")
            return text if file.endswith(".jinja") else str(_json(folder / file).get("chat_template", "")) or None
    found = said.get("chat_template")
    if isinstance(found, list):  # several by name
        found = {entry.get("name"): entry.get("template") for entry in found}.get("default")
    return found if isinstance(found, str) else None


def _add_missing(tokenizer: Tokenizer, said: Mapping[str, Any]) -> None:
    """Some repositories name added tokens only in tokenizer_config.json."""
    for number, token in sorted(said.items(), key=lambda item: int(item[0])):
        if tokenizer.id_to_token(int(number)) is not None:
            continue
        flags = {key: bool(token.get(key)) for key in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        tokenizer.add_tokens([AddedToken(token["content"], **flags)])


def _stop_ids(folder: Path, tokenizer: Tokenizer, special: Mapping[str, str]) -> tuple[int, ...]:
    listed = _json(folder / "generation_config.json").get("eos_token_id")
    ids = listed if isinstance(listed, list) else [listed]
    ids.append(tokenizer.token_to_id(special["eos_token"]) if "eos_token" in special else None)
    return tuple(dict.fromkeys(number for number in ids if isinstance(number, int)))


def _token_text(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise RenderError(f"{path}: cannot be read as JSON ({error})") from error
    return data if isinstance(data, dict) else {}


def _hash(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
