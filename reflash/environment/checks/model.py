"""The model against the cards that serve it."""

from __future__ import annotations

from reflash.environment.checks.base import Answer, Case, check, fail, good, idle, unknown, warn
from reflash.environment.facts import Model

LINE = "Model"
NONE = "no model was named"
GIB = 2**30
SHARE = 0.9  # of a card's memory that an engine takes by default
BESIDE = 3 * GIB  # context, activations, captured graphs: see reflash.engines.layout.fit
FEW = 16  # sequences at once under which a card idles


@check("model.readable", "a config.json that tells the model's size", "hf download MODEL", LINE)
def readable(case: Case) -> Answer:
    """From its folder, or from the Hub."""
    model = case.facts.model
    if model is None:
        return idle(NONE)
    return fail(model.error) if model.error else good(f"{model.name}: {model.model_type}")


@check("model.files", "every shard of its index, whole", "hf download MODEL", LINE)
def files(case: Case) -> Answer:
    """A download that broke off leaves a shard shorter than its header says."""
    model = _known(case)
    if model is None:
        return idle(NONE)
    if model.broken is None:
        return idle("its weights are not in a folder here")
    return fail("; ".join(model.broken[:5])) if model.broken else good("all there")


@check("model.memory", "weights, one sequence and what comes beside fit on the cards", "set a larger engine.tp", LINE)
def memory(case: Case) -> Answer:
    """At the tensor-parallel size that was asked for."""
    model, room = _known(case), _room(case)
    if model is None or room is None:
        return idle("no model was named, or no GPU answers")
    tp, one = case.facts.subject.tp, _sequence(model, case.facts.subject.context)
    left = f"{room / GIB:.1f} GiB left for sequences of {one / GIB:.2f}"
    words = f"{model.weights / GIB:.1f} GiB of weights over {tp} GPUs, {left}"
    return good(words) if room >= one else fail(words)


@check(
    "model.concurrency",
    f"{FEW} sequences of the planned length at once",
    "shorten model.context, or kv_dtype: fp8",
    LINE,
)
def concurrency(case: Case) -> Answer:
    """Of a hybrid model only some layers hold a cache; the others a state a sequence."""
    model, room = _known(case), _room(case)
    if model is None or room is None:
        return idle("no model was named, or no GPU answers")
    one = _sequence(model, case.facts.subject.context)
    if room < one:
        return idle("it does not fit")
    words = f"{room // one} of {case.facts.subject.context} tokens, {model.cache_per_token // 1024} KiB a token"
    return good(words) if room // one >= FEW else warn(words)


@check("model.context", "the planned length within the model's", "set a smaller model.context", LINE)
def context(case: Case) -> Answer:
    """Beyond it positions mean nothing."""
    model = _known(case)
    if model is None:
        return idle(NONE)
    if model.context is None:
        return unknown("its config.json does not tell")
    words = f"{case.facts.subject.context} of {model.context} tokens"
    return good(words) if case.facts.subject.context <= model.context else fail(words)


@check("model.dtype", "numbers that the cards compute with", "use a 16-bit checkpoint", LINE)
def dtype(case: Case) -> Answer:
    """FP8 from 8.9 on, NVFP4 from 10.0 on; below they are unpacked, where they run at all."""
    model = _known(case)
    capabilities = [float(c.capability) for c in case.facts.cards if c.capability]
    if model is None or not capabilities:
        return idle("no model was named, or no GPU answers")
    least = {"fp8": 8.9, "nvfp4": 10.0}.get(model.quantised, 8.0)
    words = f"{model.quantised or '16 bits'} on {min(capabilities)}"
    return good(words) if min(capabilities) >= least else warn(f"{words}: native from {least} on")


@check("model.split", "heads that the tensor-parallel size divides", "set another engine.tp", LINE)
def split(case: Case) -> Answer:
    """Heads go whole to a card."""
    model, tp = _known(case), case.facts.subject.tp
    if model is None:
        return idle(NONE)
    return (
        good(f"TP {tp}") if tp in model.fits_tp else fail(f"TP {tp}; possible are {', '.join(map(str, model.fits_tp))}")
    )


@check("model.template", "a chat template", "name a folder whose tokenizer has one as model.tokenizer", LINE)
def template(case: Case) -> Answer:
    """Without one, prompts are made by guess."""
    model = _known(case)
    if model is None or model.template is None:
        return idle("no model was named, or its files are not here")
    return good("there is one") if model.template else fail("there is none")


def _known(case: Case) -> Model | None:
    model = case.facts.model
    return None if model is None or model.error else model


def _sequence(model: Model, tokens: int) -> int:
    return max(1, model.cache_per_token * tokens + model.state_per_sequence)


def _room(case: Case) -> int | None:
    """Bytes left for sequences on all cards of one replica."""
    model, tp = _known(case), case.facts.subject.tp
    if model is None or len(case.facts.cards) < tp:
        return None
    usable = min(c.memory for c in case.facts.cards) * SHARE - BESIDE
    return round(usable * tp) - model.weights
