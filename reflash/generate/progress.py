"""How far a run is, for those who watch it."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from reflash.generate.left import bin_of, edge, seconds_left
from reflash.generate.rates import Rates
from reflash.types import Completion, Shard, Turn

RECENT = 512  # answers whose speed counts as that of now


@dataclass(frozen=True, slots=True)
class EngineNow:
    """What one engine does, and did in this attempt."""

    name: str
    in_flight: int  # requests
    answers: int
    output_tokens: int
    tokens_per_s: float  # over the last minute


@dataclass(frozen=True, slots=True)
class ShardNow:
    """How far one shard is."""

    name: str
    state: Literal["waiting", "generating", "generated"]
    rows: int  # conversations finished
    rows_all: int
    output_tokens: int  # of this attempt
    tokens_per_s: float  # from its first conversation to its last, of this attempt
    tries: int  # times that work on it began
    engines: tuple[str, ...]  # that answered, the one with the most first


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far a run is at one moment."""

    rows: int  # conversations finished, those of earlier attempts included
    rows_all: int
    turns: int  # generated in this attempt
    output_tokens: int  # generated in this attempt
    tokens_per_s: float  # over the last minute
    seconds: float  # since generation began in this attempt
    seconds_left: float | None  # None where nothing is known yet
    engines: tuple[EngineNow, ...] = ()

    @property
    def share(self) -> float:
        """Finished share of the conversations, 0 to 1."""
        return self.rows / self.rows_all if self.rows_all else 1.0


@dataclass(slots=True)
class _Shard:
    """A shard under way."""

    rows: int = 0
    here: int = 0  # of these, finished by this process
    others: int = 0  # rows beside these, finished by other nodes
    turns: int = 0
    tokens: int = 0
    tries: int = 0
    began: float = 0.0  # monotonic, of the last try
    ended: float | None = None
    engines: Counter[str] | None = None


class Progress:
    """Counts what is finished. Written in the event loop and by shard tasks, read from any thread."""

    def __init__(self, shards: Sequence[Shard] = (), budget: int = 2**17) -> None:
        """`budget` is the greatest length of an answer, in tokens."""
        self._plan, self._budget = list(shards), budget
        self._shards: dict[str, _Shard] = {}
        self._rows = self._turns = self._tokens = 0  # of this attempt
        self._start: float | None = None
        self._under_way: dict[int, tuple[str, float]] = {}  # requests: the engine, and when it began
        self._requests = 0
        self._lengths: Counter[int] = Counter()  # answers by bin
        self._answers: Counter[str] = Counter()  # by engine
        self._engine_tokens: Counter[str] = Counter()
        self._speeds: deque[tuple[int, float]] = deque(maxlen=RECENT)
        self.finish_reasons: Counter[str] = Counter()  # turns of this attempt
        self.rates = Rates()
        self.not_here = (0, 0)  # turns and tokens that other nodes made

    def found(self, shard: str, rows: int, turns: int = 0) -> None:
        """Conversations of a shard that are finished as work on it begins, or begins again, and their turns."""
        now = self._shards.setdefault(shard, _Shard(engines=Counter()))
        now.rows, now.turns, now.began = rows, turns, time.monotonic()
        now.tries += 1

    def committed(self, shard: str, rows: int | None = None, turns: int = 0) -> None:
        """All of a shard lies safe: so many conversations and turns, where others may have answered some."""
        now = self._shards.setdefault(shard, _Shard(engines=Counter(), began=time.monotonic()))
        now.ended, now.others = time.monotonic(), 0
        if rows is not None:
            now.rows, now.turns = rows, turns

    def elsewhere(self, node: str, turns: int, tokens: int) -> None:
        """Another node made so much since it was last heard."""
        if turns > 0 or tokens > 0:
            self.begin()
            self._turns += turns
            self._tokens += tokens
            self.not_here = (self.not_here[0] + turns, self.not_here[1] + tokens)
            self._answers[node] += turns
            self._engine_tokens[node] += tokens
            self.rates.add(node, tokens, self._elapsed)

    def reached(self, shard: str, others: int) -> None:
        """So many conversations of a shard that is not committed yet were finished by other nodes."""
        now = self._shards.setdefault(shard, _Shard(engines=Counter(), began=time.monotonic()))
        if now.ended is None:
            now.others = others

    @property
    def under_way(self) -> dict[str, int]:
        """Conversations that this process has finished, by shard, of those that are not committed yet."""
        return {name: s.here for name, s in list(self._shards.items()) if s.ended is None and s.here}

    @property
    def began(self) -> float | None:
        """When the engines were ready, by the monotonic clock; None before."""
        return self._start

    def begin(self) -> None:
        """The engines are ready: time counts from here."""
        self._start = self._start or time.monotonic()

    @contextmanager
    def request(self, engine: str) -> Iterator[list[Completion]]:
        """A request is under way; its completion, if there is one, is put into the list."""
        number = self._requests = self._requests + 1
        began = time.monotonic()
        self._under_way[number] = engine, began
        answer: list[Completion] = []
        try:
            yield answer
        finally:
            del self._under_way[number]
        for completion in answer:
            self._answered(engine, completion.completion_tokens, time.monotonic() - began)

    def counted(self, engine: str, generated: int) -> None:
        """What an engine says it has generated since its own start."""
        self.rates.counted(engine, generated, self._elapsed)

    @property
    def _elapsed(self) -> float:
        """Seconds since the engines were ready."""
        return time.monotonic() - self._start if self._start else 0.0

    def _answered(self, engine: str, tokens: int, seconds: float) -> None:
        self._lengths[bin_of(tokens)] += 1
        self._answers[engine] += 1
        self._engine_tokens[engine] += tokens
        self._speeds.append((tokens, seconds))
        self.rates.add(engine, tokens, self._elapsed)

    def finished(self, shard: str, turns: Sequence[Turn]) -> None:
        """One conversation is finished."""
        now = self._shards.setdefault(shard, _Shard(engines=Counter(), began=time.monotonic()))
        made = [t for t in turns if t.output_ids or t.content]
        tokens = sum(t.completion_tokens for t in turns)
        now.rows += 1
        now.here += 1
        now.turns += len(turns)
        now.tokens += tokens
        if now.engines is not None:
            now.engines.update(t.engine for t in made)
        self._rows += 1
        self._turns += len(made)
        self._tokens += tokens
        self.finish_reasons.update(t.finish_reason for t in turns)

    @property
    def lengths(self) -> dict[float, int]:
        """Answers of this attempt by the largest length of their bin, in tokens."""
        return {edge(number): count for number, count in sorted(self._lengths.copy().items())}

    def shards(self) -> list[ShardNow]:
        """Every shard, in the order of the plan."""
        return [_shard_now(shard, self._shards.get(shard.name)) for shard in self._plan]

    def snapshot(self) -> Snapshot:
        """How far it is now."""
        seconds = self._elapsed
        engines = self._engines(seconds)
        return Snapshot(
            rows=sum(shard.rows + shard.others for shard in list(self._shards.values())),
            rows_all=sum(shard.rows for shard in self._plan),
            turns=self._turns,
            output_tokens=self._tokens,
            tokens_per_s=sum(engine.tokens_per_s for engine in engines),
            seconds=seconds,
            seconds_left=self._left(),
            engines=engines,
        )

    def _engines(self, seconds: float) -> tuple[EngineNow, ...]:
        in_flight = Counter(engine for engine, _ in list(self._under_way.values()))
        names = sorted({*in_flight, *self._answers.copy()})
        return tuple(
            EngineNow(
                name, in_flight[name], self._answers[name], self._engine_tokens[name], self.rates.now(name, seconds)
            )
            for name in names
        )

    def _left(self) -> float | None:
        """An answer is what one request gives; a turn may take several (pieces, more draws, another try)."""
        done = sum(shard.turns for shard in list(self._shards.values()))
        left = sum(shard.turns for shard in self._plan) - done
        if not left or not self._start:
            return 0.0 if self._start else None
        now = time.monotonic()
        ages = [now - began for _, began in list(self._under_way.values())]
        speeds = list(self._speeds)
        took = sum(seconds for _, seconds in speeds)
        a_turn = max(1.0, self._lengths.total() / self._turns) if self._turns else 1.0
        waiting = max(0.0, left * a_turn - len(ages))
        speed = sum(tokens for tokens, _ in speeds) / took if took > 0 else 0.0
        return seconds_left(self._lengths.copy(), ages, speed, waiting, self._budget)


def _shard_now(shard: Shard, now: _Shard | None) -> ShardNow:
    if now is None:
        return ShardNow(shard.name, "waiting", 0, shard.rows, 0, 0.0, 0, ())
    took = (now.ended or time.monotonic()) - now.began
    engines = tuple(name for name, _ in now.engines.copy().most_common()) if now.engines else ()
    rate = now.tokens / took if took > 0 else 0.0
    state: Literal["generating", "generated"] = "generating" if now.ended is None else "generated"
    rows = min(now.rows + now.others, shard.rows)
    return ShardNow(shard.name, state, rows, shard.rows, now.tokens, rate, now.tries, engines)
