"""The model as the engine's own environment takes it."""

from __future__ import annotations

from collections.abc import Callable

from reflash.environment.checks.base import Answer, Case, Check, check, fail, good, idle, of_model, warn
from reflash.environment.facts import Model

LINE, ENGINES = "Model", "Engines"
NEWER = "reflash engines install ENGINE --model MODEL"
UNTRIED = "no model that lies here was tried by the environment"


def tried(field: str, id_: str, needs: str, remedy: str, line: str) -> Callable[[Callable[[Model], Answer]], Check]:
    """Make an entry of a rule for a model of which the environment was asked for `field`."""

    def made(rule: Callable[[Model], Answer]) -> Check:
        def applied(_: Case, model: Model) -> Answer:
            return idle(UNTRIED) if getattr(model, field) is None else rule(model)

        return check(id_, needs, remedy, line)(of_model(applied))

    return made


@tried("type_known", "engine.transformers", "a transformers that knows the model's type", NEWER, ENGINES)
def transformers(model: Model) -> Answer:
    """An older one ends at the model's config."""
    return good(model.model_type) if model.type_known else fail(f"it does not know {model.model_type}")


@tried("registered", "engine.registry", "the model's architecture in the engine's registry", NEWER, ENGINES)
def registry(model: Model) -> Answer:
    """vLLM falls back to transformers' code for others, which is slower."""
    words = ", ".join(model.architectures) or "no architecture"
    return good(words) if model.registered else warn(f"{words} is not in it")


@tried("tokenizer", "model.tokenizer", "a tokenizer that loads", "hf download MODEL", LINE)
def tokenizer(model: Model) -> Answer:
    """By the environment's own transformers."""
    return fail(model.tokenizer) if model.tokenizer else good("it loads")


@tried(
    "renders",
    "model.renders",
    "a template that renders a question",
    "name a folder with another template as model.tokenizer",
    LINE,
)
def renders(model: Model) -> Answer:
    """With the question in it. Reflash asks in ids, and renders many models without their template."""
    return warn(model.renders) if model.renders else good("it renders")


@tried(
    "thinking",
    "model.thinking",
    "`enable_thinking` changes the prompt, where the template knows it",
    "set thinking by hand",
    LINE,
)
def thinking(model: Model) -> Answer:
    """A template of a model that always thinks, or never, has no such switch: information."""
    if model.thinking:
        return good("it does")
    promised = "qwen3" in model.model_type.replace("_", "").replace(".", "").lower()
    return warn(f"it does not, and {model.model_type} has that switch") if promised else idle("it has no such switch")


@tried("parsers_known", "engine.parser", "the parser of reasoning that the model's card names", NEWER, ENGINES)
def parser(model: Model) -> Answer:
    """Reflash reads ids and needs none; whoever serves the same model to people does."""
    if not model.parsers:
        return idle("its card names none")
    known = [name for name in model.parsers if name in (model.parsers_known or ())]
    return good(", ".join(known)) if known else warn(f"it does not know {', '.join(model.parsers)}")
