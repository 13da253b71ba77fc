"""What an environment makes of a model's folder. The audited interpreter runs this file, with its own transformers.

Arguments: the folder, the engine whose registries are asked ("" for none), and "hub" for a part of a repository, whose
tokenizer may not be there yet. Writes one line of JSON; nothing of the folder is executed.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def main(folder: str, engine: str, part: str = "") -> None:
    """Ask for the model type, the tokenizer, the template, the registries: each may fail by itself."""
    config = json.loads((Path(folder) / "config.json").read_bytes())
    told: dict[str, Any] = {"type_known": _type_known(config.get("model_type"))}
    if not part or (Path(folder) / "tokenizer.json").is_file():
        told |= _tokenizer(folder)
    if engine == "vllm":
        told["registered"] = _registered(config.get("architectures") or [])
    told["parsers"] = _parsers(engine)
    sys.stdout.write("\n" + json.dumps(told) + "\n")


def _type_known(kind: str | None) -> bool | None:
    try:
        from transformers import CONFIG_MAPPING
    except ImportError:
        return None
    return kind in CONFIG_MAPPING


def _tokenizer(folder: str) -> dict[str, Any]:
    """`tokenizer` is why it does not load, "" where it does; `thinking` whether that switch changes the prompt."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001 - whatever a foreign folder makes of a library is what is asked for
        return {"tokenizer": f"{type(error).__name__}: {error}"}
    if not tokenizer.chat_template:
        return {"tokenizer": ""}
    asked = [{"role": "user", "content": "Hello"}]
    try:
        on, off = (
            tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True, enable_thinking=thinking)
            for thinking in (True, False)
        )
    except Exception as error:  # noqa: BLE001 - a template is a program of somebody else
        return {"tokenizer": "", "renders": f"{type(error).__name__}: {error}"}
    return {
        "tokenizer": "",
        "renders": "" if "Hello" in on else "the question is not in the prompt",
        "thinking": on != off,
    }


def _registered(architectures: list[str]) -> bool | None:
    try:
        from vllm import ModelRegistry
    except ImportError:
        return None
    return bool(set(architectures) & set(ModelRegistry.get_supported_archs()))


def _parsers(engine: str) -> list[str] | None:
    """Names of parsers of reasoning; None where the engine does not tell."""
    try:
        if engine == "vllm":
            from vllm.reasoning import ReasoningParserManager

            return sorted(ReasoningParserManager.list_registered())
        if engine == "sglang":
            return sorted(importlib.import_module("sglang.srt.parser.reasoning_parser").ReasoningParser.DetectorMap)
    except (ImportError, AttributeError):
        return None
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
