"""A group of shards generated, judged and published: for plans of more shards than a page can show."""

from __future__ import annotations

from dataclasses import dataclass

from prefect import task
from prefect.cache_policies import NO_CACHE

from reflash.types import Shard
from tasks.line import Line


@dataclass(frozen=True, slots=True)
class Group:
    """Some neighbouring shards."""

    shards: tuple[Shard, ...]

    @property
    def name(self) -> str:
        """`00000` or `00000–00019`."""
        first, last = self.shards[0].name, self.shards[-1].name
        return first if first == last else f"{first}–{last}"


@task(name="shards", task_run_name="shards {group.name}", cache_policy=NO_CACHE, result_serializer="json")
def shards(group: Group, line: Line) -> int:
    """Take each shard through every stage, none waiting for another; how many there were. Retries are by shard."""
    line.run(group.shards)
    return len(group.shards)
