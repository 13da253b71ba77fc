"""What a benchmark says in the end: the forecast, what stands behind it, and what it advises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reflash.benchmark.advice import Choice, Rejected, patch, patch_options, patch_yaml, rejected, remarks
from reflash.benchmark.advice import choose as choose_point
from reflash.benchmark.facts import ModelSize
from reflash.benchmark.outcome import Outcome
from reflash.benchmark.pilot import Pilot
from reflash.benchmark.points import apply
from reflash.config.run import RunConfig
from reflash.forecast.ceiling import Ceiling, ceiling
from reflash.forecast.costs import Bytes, Cost, Machine, bytes_kept, costs
from reflash.forecast.expected import Answered, answer, read_expected
from reflash.forecast.lengths import LargerBudget, Survival, larger_budget
from reflash.forecast.outlook import Outlook, outlook

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
ALONE = "no point gave a rate beside it, or none was compared"
BUDGETS = (2, 4)  # times the budget


@dataclass(frozen=True, slots=True)
class Result:
    """Everything found, and what follows."""

    run: str
    source: str
    model: str
    kind: str  # of the engine
    made: float  # Unix time
    rows: int  # of the whole set
    turns: int
    outcomes: tuple[Outcome, ...]
    choice: Choice | None
    rejected: tuple[Rejected, ...]
    settings: Mapping[str, Any]  # to be put into the config
    pilot: Pilot
    outlook: Outlook
    curve: Survival  # of single turns
    larger: tuple[LargerBudget, ...]
    budget: int
    costs: tuple[Cost, ...]
    currency: str
    kept: Bytes
    expected: Answered | None
    ceiling: Ceiling | None
    remarks: tuple[str, ...]

    @property
    def gpus(self) -> int:
        """GPUs by which it was measured; a CPU counts as one, and a server that runs elsewhere too."""
        return _units(self.pilot)

    def to_json(self) -> dict[str, Any]:
        """As JSON-able data: `outlook` is what a run is held against afterwards."""
        return {
            "made": self.made,
            "run": self.run,
            "source": self.source,
            "model": self.model,
            "point": self.pilot.point.name,
            "rows": self.rows,
            "turns": self.turns,
            "outlook": self.outlook.to_json(),
            "lengths": _lengths(self.curve),
            "larger_budgets": [asdict(one) for one in self.larger],
            "costs": [asdict(one) for one in self.costs],
            "currency": self.currency,
            "bytes": asdict(self.kept),
            "expected": None if self.expected is None else asdict(self.expected),
            "ceiling": self._ceiling(),
            "advice": self._advice(),
            "points": [outcome.to_json() for outcome in self.outcomes],
            "pilot": self.pilot.to_json(),
        }

    def _ceiling(self) -> dict[str, Any] | None:
        if self.ceiling is None:
            return None
        return asdict(self.ceiling) | {"share": self.ceiling.share(self.pilot.rate.tokens_per_s)}

    def _advice(self) -> dict[str, Any]:
        return {
            "point": self.pilot.point.name,
            "why": ALONE if self.choice is None else self.choice.why,
            "config": patch_yaml(dict(self.settings)),
            "set": patch_options(dict(self.settings)),
            "rejected": [{"point": one.outcome.point.name, "why": one.why} for one in self.rejected],
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True, slots=True)
class Whole:
    """The set that the forecast is for."""

    rows: int
    turns: int
    bandwidth: float  # bytes a second of the memories that serve
    made: float


def conclude(config: RunConfig, outcomes: Sequence[Outcome], pilot: Pilot, model: ModelSize, whole: Whole) -> Result:
    """From measurements to a forecast and advice. Pure."""
    said = outlook(pilot.sample, pilot.rate, pilot.pace, whole.rows, config.sampling.seed)
    curve = pilot.sample.curve()
    choice = choose_point(outcomes)
    settings, used = config.benchmark, apply(config, pilot.point)
    gpus = _units(pilot)
    here = Machine("measured here", gpus, settings.price)
    others = (Machine(m.name, m.gpus, m.price, m.speed) for m in settings.machines)
    prompts = pilot.prompt_tokens_per_turn
    tokens = said.output_tokens.mid + prompts * whole.turns
    budget = config.length.limit if config.length.at_budget == "continue" else config.sampling.max_new_tokens
    chosen = choice.outcome if choice else None
    return Result(
        run=config.run,
        source=config.source.path,
        model=config.model.name,
        kind=used.engine.kind,
        made=whole.made,
        rows=whole.rows,
        turns=whole.turns,
        outcomes=tuple(outcomes),
        choice=choice,
        rejected=tuple(rejected(outcomes, chosen, model)) if chosen else (),
        settings=patch(config, pilot.point),
        pilot=pilot,
        outlook=said,
        curve=curve,
        larger=tuple(one for times in BUDGETS if (one := larger_budget(curve, times * budget))),
        budget=budget,
        costs=costs(said.seconds, said.tail_s, gpus, (here, *others)),
        currency=settings.currency,
        kept=bytes_kept(tokens, pilot.dataset_bytes_per_token, model.hidden, model.layers, settings.hidden_layers),
        expected=answer(read_expected(settings.expect), said.tokens_per_s.times(1 / gpus)) if settings.expect else None,
        ceiling=_ceiling(used, pilot, model, curve, whole.bandwidth),
        remarks=tuple(remarks(chosen, model)) if chosen else (),
    )


def _units(pilot: Pilot) -> int:
    return pilot.gpus or max(1, pilot.engines)


def _ceiling(config: RunConfig, pilot: Pilot, model: ModelSize, curve: Survival, bandwidth: float) -> Ceiling | None:
    """At the width used, each sequence holding its prompt and, on average over its life, half of its answer."""
    mean, second = curve.mean_up_to(curve.longest), _second_moment(curve)
    context = pilot.prompt_tokens_per_turn + (second / mean / 2 if mean else 0.0)
    width = config.engine.width * max(1, pilot.engines)
    return ceiling(model.traffic, bandwidth, width, context, max(1, pilot.engines))


def _second_moment(curve: Survival) -> float:
    """Mean of the squared lengths: long answers are under way for longer, so a look finds more of them."""
    total, before, share = 0.0, 0.0, 1.0
    for tokens, after in zip([*curve.tokens, curve.longest], [*curve.share, 0.0], strict=True):
        total += share * (float(tokens) ** 2 - before**2)
        before, share = float(tokens), float(after)
    return total


def _lengths(curve: Survival) -> dict[str, Any]:
    """The distribution in figures; a quantile that was cut off is null."""
    return {
        "answers": curve.answers,
        "mean": curve.mean_up_to(curve.longest),
        "quantiles": {str(q): curve.quantile(q) for q in QUANTILES},
        "cut": curve.unknown,
        "longest": curve.longest,
    }
