"""Conversations, turns and configs for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reflash.config.load import parse_config
from reflash.config.run import RunConfig
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.ledger.manifest import Manifest
from reflash.types import Conversation, Message, Origin, Planned, Turn
from tests.fake_renderer import FakeRenderer


def talk(name: str, *questions: str) -> Conversation:
    """A conversation of user turns, each with an old answer."""
    messages = [m for q in questions for m in (Message("user", q), Message("assistant", f"old answer to {q}"))]
    return Conversation(name, tuple(messages))


def planned(conversation: Conversation, renderer: FakeRenderer | None = None) -> Planned:
    """A conversation with its first prompt rendered."""
    first = conversation.turns()[0]
    ids = (renderer or FakeRenderer()).prompt(conversation.messages[:first], conversation.tools, thinking=False)
    return Planned(conversation, Origin("test.jsonl", 1), False, ids)


def rows(count: int, prefix: str = "row") -> list[Planned]:
    """Single-turn conversations, each with a question of its own."""
    return [planned(talk(f"{prefix}-{n:04}", f"question {prefix} {n}")) for n in range(count)]


def turn(conversation: str, number: int = 0, **changes: Any) -> Turn:
    """A finished turn."""
    facts: dict[str, Any] = {
        "conversation": conversation,
        "turn": number,
        "position": 2 * number + 1,
        "prompt_ids": (3, 20, 0, 4),
        "output_ids": (120, 121, 0),
        "finish_reason": "stop",
    }
    return Turn(**(facts | changes))


def config(run: Path | str, **changes: Any) -> RunConfig:
    """A run config with the scripted engine; `changes` are whole groups of settings."""
    data: dict[str, Any] = {
        "run": str(run),
        "source": {"path": "test.jsonl"},
        "model": {"name": "fake", "context": 4096},
        "engine": {"kind": "scripted", "width": 8},
        "thinking": {"mode": "off"},
        "generate": {"flush_s": 0.05},
    }
    return parse_config(data | changes, "test")


def manifest(name: str = "run-1", **decides: Any) -> Manifest:
    """What was asked of a run that decides by the model's name and the source alone, if nothing else is said."""
    least = {"model": {"name": "fake"}, "source": {"digest": "0"}}
    return Manifest(name, least | decides, {"config": {"source": {"path": "test.jsonl"}}})


def begun(run: Path | str, name: str = "run-1") -> Ledger:
    """The folder of a run that has begun."""
    ledger = open_ledger(str(run), create=True)
    ledger.start(manifest(name))
    return ledger


def conversations_file(path: Path, count: int) -> Path:
    """A JSONL file of single-turn conversations."""
    rows = [
        {
            "id": f"row-{n:04}",
            "messages": [{"role": "user", "content": f"question {n}"}, {"role": "assistant", "content": "OK."}],
        }
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
