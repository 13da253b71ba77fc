"""The model as the engine's own environment takes it."""

from __future__ import annotations

from reflash.environment.checks.base import Answer, Case, check, fail, good, idle, warn
from reflash.environment.facts import Model

LINE, ENGINES = "Model", "Engines"
NEWER = "reflash engines install ENGINE --model MODEL"
UNTRIED = "no model in a folder was tried by the environment"


def _model(case: Case) -> Model | None:
    model = case.facts.model
    return None if model is None or model.error else model


@check("engine.transformers", "a transformers that knows the model's type", NEWER, ENGINES)
def transformers(case: Case) -> Answer:
    """An older one ends at the model's config."""
    model = _model(case)
    if model is None or model.type_known is None:
        return idle(UNTRIED)
    return good(model.model_type) if model.type_known else fail(f"it does not know {model.model_type}")


@check("engine.registry", "the model's architecture in the engine's registry", NEWER, ENGINES)
def registry(case: Case) -> Answer:
    """vLLM falls back to transformers' code for others, which is slower."""
    model = _model(case)
    if model is None or model.registered is None:
        return idle(UNTRIED)
    words = ", ".join(model.architectures) or "no architecture"
    return good(words) if model.registered else fail(f"{words} is not in it")


@check("model.tokenizer", "a tokenizer that loads", "hf download MODEL", LINE)
def tokenizer(case: Case) -> Answer:
    """By the environment's own transformers."""
    model = _model(case)
    if model is None or model.tokenizer is None:
        return idle(UNTRIED)
    return fail(model.tokenizer) if model.tokenizer else good("it loads")


@check(
    "model.renders",
    "a template that renders a question",
    "name a folder with another template as model.tokenizer",
    LINE,
)
def renders(case: Case) -> Answer:
    """With the question in it."""
    model = _model(case)
    if model is None or model.renders is None:
        return idle(UNTRIED)
    return fail(model.renders) if model.renders else good("it renders")


@check(
    "model.thinking", "`enable_thinking` changes the prompt, where the template knows it", "set thinking by hand", LINE
)
def thinking(case: Case) -> Answer:
    """A template of a model that always thinks, or never, has no such switch: information."""
    model = _model(case)
    if model is None or model.thinking is None:
        return idle(UNTRIED)
    if model.thinking:
        return good("it does")
    promised = "qwen3" in model.model_type.replace("_", "").replace(".", "").lower()
    return warn(f"it does not, and {model.model_type} has that switch") if promised else idle("it has no such switch")
