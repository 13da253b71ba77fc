"""The plan's index: which shards there are, and what became of the source's rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from reflash.types import Shard

REPLAN = (
    "delete plan/index.json there and give the command that began the run again: the plan is made again, no answer is"
    " lost"
)
_NAME = re.compile(r"\w+", re.ASCII)  # it becomes part of file names


@dataclass(frozen=True, slots=True)
class Index:
    """Written once the plan is whole."""

    run: str  # the run's id
    shards: tuple[Shard, ...]
    source: dict[str, int]  # rows of the source by what became of them

    def to_json(self) -> bytes:
        """The bytes of plan/index.json."""
        shards = [{"name": s.name, "rows": s.rows, "turns": s.turns} for s in self.shards]
        return orjson.dumps({"run": self.run, "shards": shards, "source": self.source}, option=orjson.OPT_INDENT_2)


def read_index(found: Mapping[str, Any]) -> Index:
    """The inverse of `Index.to_json`, parsed already; raises ValueError that says what is odd."""
    for key, kind in (("run", str), ("shards", list), ("source", dict)):
        if not isinstance(found.get(key), kind):
            raise ValueError(f"`{key}` is {type(found.get(key)).__name__}")
    counts = {str(key): _count(value, f"source.{key}") for key, value in found["source"].items()}
    return Index(found["run"], _shards(found["shards"]), counts)


def _shards(found: Sequence[Any]) -> tuple[Shard, ...]:
    shards = tuple(_shard(one) for one in found)
    if len({shard.name for shard in shards}) != len(shards):
        raise ValueError("a shard stands twice")
    return shards


def _shard(found: Any) -> Shard:
    name = found.get("name") if isinstance(found, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("a shard has no name, or one that is no file's")
    return Shard(name, _count(found.get("rows"), f"rows of {name}"), _count(found.get("turns"), f"turns of {name}"))


def _count(found: Any, what: str) -> int:
    if type(found) is not int or found < 0:
        raise ValueError(f"{what} is no count")
    return found
