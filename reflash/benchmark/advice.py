"""What to use, what not, and why, in words with figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from reflash.benchmark.facts import ModelSize
from reflash.benchmark.halving import SURE, best
from reflash.benchmark.outcome import Outcome
from reflash.benchmark.points import Point, apply
from reflash.config.run import RunConfig

HOLDS = 0.9  # of the places asked for: an engine that holds less is worth a word
FULL = 0.97  # of the cache


@dataclass(frozen=True, slots=True)
class Choice:
    """The point to use."""

    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """A point that is not used."""

    outcome: Outcome
    why: str


def choose(outcomes: Sequence[Outcome]) -> Choice | None:
    """The fastest point, unless the config as it stands is as fast as can be told; None where none gave a rate."""
    first = best(outcomes)
    if first is None:
        return None
    base = next((o for o in outcomes if o.point == Point() and o.round == first.round and o.ok), None)
    if base is first or (base and first.tokens_per_s - base.tokens_per_s < SURE * (first.error + base.error)):
        assert base
        others = (
            f"; {first.point.name} made {first.tokens_per_s:,.0f}, no more than chance may do" if base != first else ""
        )
        return Choice(
            base, f"no point is measurably faster than the config as it stands: {base.tokens_per_s:,.0f} tok/s{others}"
        )
    then = _compared(first, outcomes)
    return Choice(first, f"the fastest of those compared: {first.tokens_per_s:,.0f} tok/s{then}")


def rejected(outcomes: Sequence[Outcome], chosen: Outcome, model: ModelSize) -> list[Rejected]:
    """Every other point by its last outcome, the fastest first, those without a rate last."""
    last: dict[Point, Outcome] = {}
    for outcome in outcomes:
        if outcome.point != chosen.point and (outcome.status != "not reached" or outcome.point not in last):
            last[outcome.point] = outcome
    order = sorted(last.values(), key=lambda o: (not o.ok, -o.round, -o.tokens_per_s))
    return [Rejected(o, _why(o, outcomes, chosen, model)) for o in order]


def patch(config: RunConfig, point: Point) -> dict[str, Any]:
    """The settings that a point changes, as a config writes them; the whole engine where that is another."""
    before = config.engine.model_dump(mode="json", exclude={"api_key"})
    after = apply(config, point).engine.model_dump(mode="json", exclude={"api_key"})
    if before["kind"] != after["kind"]:
        unset = apply(config, point).engine.model_dump(mode="json", exclude_unset=True, exclude={"api_key"})
        return {"engine": {"kind": after["kind"], **unset}}
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return {"engine": changed} if changed else {}


def patch_yaml(settings: dict[str, Any]) -> str:
    """The patch as YAML, to be put into a config; "" where nothing changes."""
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True) if settings else ""


def patch_options(settings: dict[str, Any]) -> list[str]:
    """The patch as `--set` takes it."""
    engine = settings.get("engine", {})
    if "kind" in engine:
        return [f"engine={yaml.safe_dump(engine, default_flow_style=True, width=10**6).strip()}"]
    flat = {key: yaml.safe_dump(value, default_flow_style=True, width=10**6) for key, value in engine.items()}
    return [f"engine.{key}={text.removesuffix(chr(10)).removesuffix(chr(10) + '...')}" for key, text in flat.items()]


def remarks(outcome: Outcome, model: ModelSize) -> list[str]:
    """What is to be seen in a point's own figures beside its rate."""
    said = []
    if outcome.running is not None and outcome.width and outcome.running < HOLDS * outcome.width:
        said.append(f"it held {outcome.running:,.0f} of the {outcome.width:,} requests asked for")
    if outcome.preempted:
        said.append(f"it threw {outcome.preempted:,} requests out of its batch")
    if outcome.cache is not None and outcome.cache >= FULL:
        said.append(f"its cache was {outcome.cache:.0%} full")
    if outcome.failed:
        said.append(f"{outcome.failed:,} requests were lost or answered with garbage")
    tp = dict(outcome.point.settings).get("tp")
    if tp and int(tp) > 1 and model.columns:
        said.append(f"TP {tp} leaves each GPU matrices of {model.columns // int(tp):,} columns")
    return said


def _why(outcome: Outcome, outcomes: Sequence[Outcome], chosen: Outcome, model: ModelSize) -> str:
    if not outcome.ok:
        return f"{outcome.status}: {outcome.why}"
    beside = next((o for o in outcomes if o.point == chosen.point and o.round == outcome.round and o.ok), chosen)
    share = outcome.tokens_per_s / beside.tokens_per_s if beside.tokens_per_s else 0.0
    words = [f"{outcome.tokens_per_s:,.0f} tok/s, {share:.2f} of {beside.tokens_per_s:,.0f}", *remarks(outcome, model)]
    return "; ".join(words)


def _compared(first: Outcome, outcomes: Sequence[Outcome]) -> str:
    """Against the config as it stands, in the last round in which both were measured."""
    for number in range(first.round, -1, -1):
        now = {o.point: o for o in outcomes if o.round == number and o.ok}
        if Point() in now and first.point in now:
            base, own = now[Point()], now[first.point]
            times = own.tokens_per_s / base.tokens_per_s
            return f", {times:.2f} times the config as it stands ({base.tokens_per_s:,.0f} in the same round)"
    return "; the config as it stands gave no rate"
