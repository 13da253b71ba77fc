"""The versions that a model's card asks for."""

from __future__ import annotations

from reflash.environment.card import strictest
from reflash.environment.checks.base import Answer, Case, check, fail, good, idle, warn
from reflash.environment.checks.versions import below

LINE = "Minimum versions on a model card"
REMEDY = "reflash engines install ENGINE --model MODEL --version VERSION"


def _least(case: Case, package: str) -> Answer:
    """The strictest holds; what is not said to be required is a warning."""
    model, python = case.facts.model, case.facts.python
    have = python.packages.get(package) if python else None
    asked = strictest(model.asks, package) if model else None
    if asked is None or not have:
        return idle(f"no card asks for a version of {package}, or none is installed")
    words = f"{package} {have}; line {asked.line} of the card: {asked.operator} {asked.version}, {asked.strength}"
    if not below(have, asked.version):
        return good(words)
    return fail(words) if asked.strength == "required" else warn(words)


@check("card.engine", "the engine at the version that the card asks for", REMEDY, LINE)
def engine(case: Case) -> Answer:
    """Of the engine that is to serve it."""
    return _least(case, case.facts.subject.engine)


@check("card.transformers", "transformers at the version that the card asks for", REMEDY, LINE)
def transformers(case: Case) -> Answer:
    """It brings the model's configuration and tokenizer."""
    return _least(case, "transformers")
