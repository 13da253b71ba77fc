"""A config to begin with: every key with its default, and above it what it means, made from the models."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reflash.config.keys import kinds_of, no_such_kind
from reflash.config.run import RunConfig
from reflash.errors import ConfigError

_WIDTH = 110  # characters of a line
_NEEDED: dict[str, dict[str, Any]] = {  # by kind of engine, what has no default
    "endpoint": {"urls": ["http://127.0.0.1:8000"]},
    "llamacpp": {"model": "Qwen3.6-27B-Q4_K_M.gguf"},
    "vllm": {"model": "Qwen/Qwen3.6-27B"},
    "sglang": {"model": "Qwen/Qwen3.6-27B"},
    "scripted": {},
}


def example(kind: str) -> str:
    """The YAML text, with an engine of that kind; a key without a default has a value to be changed.

    Raises ConfigError naming the kinds where there is none such.
    """
    if kind not in _NEEDED:
        raise ConfigError(f"--engine: {no_such_kind('engine', kind)}")
    shown = RunConfig.model_validate(
        {
            "run": "runs/mine",
            "source": {"path": "conversations.jsonl"},
            "model": {"name": "Qwen/Qwen3.6-27B"},
            "engine": {"kind": kind, **_NEEDED[kind]},
        }
    )
    others = ", ".join(one for one in kinds_of("engine") if one != kind)
    head = (
        "Every setting with its default. Lines that are left out keep it; those marked NEEDED have none. "
        f"Other engines ({others}): reflash config example --engine KIND"
    )
    return "\n".join([*_comment(head, ""), *_lines(shown, "")]) + "\n"


def _lines(model: BaseModel, indent: str) -> Iterator[str]:
    values = model.model_dump(mode="json")
    fields = type(model).model_fields
    for name, field in sorted(fields.items(), key=lambda item: item[0] != "kind"):  # it decides what follows
        value = getattr(model, name)
        if not indent:
            yield ""
        yield from _comment(_meaning(field, value), indent)
        if isinstance(value, BaseModel):
            yield f"{indent}{name}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{name}: {_written(values[name])}"


def _meaning(field: FieldInfo, value: Any) -> str:
    """What a key means: its own description, of a group what its model says."""
    own = field.description or (cleandoc(value.__doc__ or "") if isinstance(value, BaseModel) else "")
    needed = "NEEDED. " if field.is_required() and not isinstance(value, BaseModel) else ""
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    given = f" One of {', '.join(choices)}." if len(choices) > 1 else ""
    return f"{needed}{own}{given}" or "Which engine; the keys that follow are its own."


def _comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _written(value: Any) -> str:
    """A plain value as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
