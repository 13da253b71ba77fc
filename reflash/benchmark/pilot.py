"""The pilot: a sample of the real rows answered to the end, by the point that is to be used."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reflash.benchmark.bench import Bench
from reflash.benchmark.notes import PILOT_RUN
from reflash.benchmark.points import Point, apply, point
from reflash.benchmark.press import SHARD, Pressed, press_through
from reflash.benchmark.steady import UNKNOWN_SPREAD, all_taken, steady
from reflash.config.run import RunConfig
from reflash.errors import EngineError
from reflash.forecast.outlook import Rate
from reflash.forecast.queue import Pace, Requests, pace_of
from reflash.forecast.sample import Sample, SeenRow, read_sample
from reflash.ledger import names
from reflash.ledger.ledger import Ledger
from reflash.publish.run import publish_shard
from reflash.types import Planned, Shard, Turn
from reflash.validate.run import validate_shard


@dataclass(frozen=True, slots=True)
class Pilot:
    """What the pilot saw."""

    point: Point
    sample: Sample
    rate: Rate  # steady
    pace: Pace
    whole: bool  # every row was answered to its end
    seconds: float  # from the first request to the last answer
    tail_s: float  # from the last request to the last answer
    tail_tokens_per_s: float
    launch_s: float
    engines: int
    gpus: int
    version: str
    prompt_tokens_per_turn: float
    dataset_bytes_per_token: float | None
    verdicts: Mapping[str, int]  # turns by verdict; empty where the pilot was cut short

    def to_json(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "point": dict(self.point.settings),
            "sample": self.sample.to_json(),
            "rate": asdict(self.rate),
            "pace": asdict(self.pace),
            "verdicts": dict(self.verdicts),
        }


LEAST_S = 5.0  # of a steady rate: shorter than that, the pace of single requests says more
_PLAIN = (
    "whole",
    "seconds",
    "tail_s",
    "tail_tokens_per_s",
    "launch_s",
    "engines",
    "gpus",
    "version",
    "prompt_tokens_per_turn",
    "dataset_bytes_per_token",
)


def read_pilot(data: Mapping[str, Any]) -> Pilot:
    """The inverse of `Pilot.to_json`; raises KeyError or TypeError where it is none."""
    return Pilot(
        point=point(data["point"]),
        sample=read_sample(data["sample"]),
        rate=Rate(**data["rate"]),
        pace=Pace(**data["pace"]),
        verdicts=dict(data["verdicts"]),
        **{name: data[name] for name in _PLAIN},
    )


async def run_pilot(
    bench: Bench, chosen: Point, strata: Mapping[str, str], all_rows: Mapping[str, int], limit_s: float
) -> Pilot:
    """Answer the bench's rows once, in `limit_s` seconds after the engines are ready at most.

    `strata` gives each conversation's, `all_rows` the rows of the whole set by stratum. Raises EngineError or
    ConfigError where the engines do not start or break; a pilot whose rows take longer is cut short.
    """
    bare = apply(bench.config, chosen)
    config = bare.model_copy(update={"run": f"{bench.notes.store.url.rstrip('/')}/{PILOT_RUN}"})
    ledger = _fresh(bench, config)
    async with bench.launched(config) as launched:
        work = bench.work(config, ledger)
        limit = max(limit_s, bench.deadline - time.monotonic())
        pressed = await press_through(limit, launched.engines, config.engine.width, work, bench.rows)
        places = config.engine.width * len(launched.engines)
        if pressed.broke:
            raise EngineError(f"the pilot was not answered: {pressed.broke}")
        turns = await asyncio.to_thread(_turns, ledger)
        pace = _pace(pressed, places)
        kept = await asyncio.to_thread(_judged, config, ledger, bench.rows) if pressed.whole else (None, {})
        last_sent = max(call.sent for call in pressed.calls)
        tail = max(0.0, pressed.ended - last_sent) if pressed.whole else 0.0
        return Pilot(
            point=chosen,
            sample=Sample(_seen(config, turns, pressed, strata), dict(all_rows)),
            rate=_rate(pressed, pace),
            pace=pace,
            whole=pressed.whole,
            seconds=pressed.ended - pressed.began,
            tail_s=tail,
            tail_tokens_per_s=_between(pressed, last_sent, pressed.ended),
            launch_s=launched.took_s,
            engines=len(launched.engines),
            gpus=len(launched.uuids),
            version=launched.engines[0].version,
            prompt_tokens_per_turn=float(np.mean([len(t.prompt_ids) for t in turns])) if turns else 0.0,
            dataset_bytes_per_token=kept[0],
            verdicts=kept[1],
        )


def _fresh(bench: Bench, config: RunConfig) -> Ledger:
    """The pilot's folder, without what an earlier try answered: its time would not be the time of all."""
    ledger = bench.ledger(config, PILOT_RUN)
    ledger.sweep()
    ledger.store.delete([names.part(SHARD)])
    if ledger.shards() is None:
        ledger.write_shard(SHARD, bench.rows)
        ledger.finish_plan([Shard(SHARD, len(bench.rows), 0)], {"rows": len(bench.rows)})
    return ledger


def _turns(ledger: Ledger) -> list[Turn]:
    from reflash.ledger.schema import turn_rows

    return turn_rows(ledger.finished(SHARD))


def _judged(config: RunConfig, ledger: Ledger, rows: Sequence[Planned]) -> tuple[float | None, Mapping[str, int]]:
    """Bytes of the dataset for each token in it, and turns by verdict."""
    calls = config.tools.calls == "regenerate"
    ledger.commit(SHARD, {p.conversation.id: len(p.conversation.turns(regenerate_calls=calls)) for p in rows})
    validate_shard(config, SHARD)
    summary = publish_shard(config, SHARD)
    good = ledger.good_rows(SHARD)
    size = sum(found.size for found in ledger.store.under(names.DATASET))
    tokens = sum(len(ids) for ids in good["input_ids"].to_pylist()) if good is not None else 0
    return (size / tokens if tokens else None), summary.verdicts


def _seen(config: RunConfig, turns: Sequence[Turn], pressed: Pressed, strata: Mapping[str, str]) -> tuple[SeenRow, ...]:
    """Rows as they were answered; of those under way at the end what they had made by then, at the speed of the others.

    Turns of a row under way that had ended are in no segment, and are known from their requests.
    """
    by_row: dict[str, list[Turn]] = defaultdict(list)
    for turn in turns:
        by_row[turn.conversation].append(turn)
    spent: Counter[str] = Counter()
    made: dict[str, Counter[int]] = defaultdict(Counter)  # by row and turn, several pieces or draws of it together
    for call in pressed.done:
        spent[call.conversation] += call.tokens
        made[call.conversation][call.turn] += call.tokens
    found = [
        SeenRow(
            strata[name],
            tuple(t.completion_tokens for t in sorted(own, key=lambda t: t.turn) if t.output_ids or t.content),
            cut=any(_cut(config, t) for t in own),
            prompt_tokens=sum(len(t.prompt_ids) for t in own),
            spent=spent[name],
        )
        for name, own in by_row.items()
    ]
    lived = sum((c.ended or 0.0) - c.sent for c in pressed.done)
    speed = sum(spent.values()) / lived if lived > 0 else 0.0
    for call in pressed.under_way:
        so_far = made[call.conversation]
        so_far[call.turn] += max(1, round(speed * (pressed.ended - call.sent)))
        found.append(SeenRow(strata[call.conversation], tuple(n for _, n in sorted(so_far.items())), under_way=True))
    return tuple(found)


def _cut(config: RunConfig, turn: Turn) -> bool:
    """Whether an answer was ended by the run's own budget: it would have gone on."""
    most = config.sampling.max_new_tokens
    if config.length.at_budget == "continue":
        most = max(most, config.length.limit)
    room = config.model.context - len(turn.prompt_ids)
    return turn.finish_reason == "length" and turn.completion_tokens >= min(most, room)


def _rate(pressed: Pressed, pace: Pace) -> Rate:
    """Steady: from the moment all places were taken to the last request; by the pace where there was no such time."""
    last = max(call.sent for call in pressed.calls)
    full = all_taken(pressed.calls, pace.places) or pressed.ended
    end = last if pressed.whole else pressed.ended
    found = steady(pressed.calls, pressed.looks, full, end) if end - full >= LEAST_S else None
    if found is None:
        return Rate(pace.tokens_per_s, UNKNOWN_SPREAD, 2)
    return Rate(found.tokens_per_s, found.spread, found.windows)


def _pace(pressed: Pressed, places: int) -> Pace:
    done = pressed.done
    if not done:
        raise EngineError("no row of the pilot was answered in its time: give the benchmark more minutes")
    return pace_of(
        Requests(
            np.array([call.sent for call in done]),
            np.array([call.ended or 0.0 for call in done]),
            np.array([float(call.tokens) for call in done]),
        ),
        places,
    )


def _between(pressed: Pressed, begin: float, end: float) -> float:
    found = steady(pressed.calls, (), begin, end)
    return found.tokens_per_s if found else 0.0
