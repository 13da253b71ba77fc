"""The model against the cards that serve it."""

from __future__ import annotations

from reflash.environment.checks.base import Answer, Case, check, fail, good, idle, of_model, unknown, warn
from reflash.environment.facts import Model
from reflash.environment.room import room, sequence

LINE = "Model"
FEW_CARDS = "fewer GPUs answer than one replica takes"
GIB = 2**30
FEW = 16  # sequences at once under which a card idles


@check("model.readable", "a config.json that tells the model's size", "hf download MODEL", LINE)
def readable(case: Case) -> Answer:
    """From its folder, or from the Hub."""
    model = case.facts.model
    if model is None:
        return idle("no model was named")
    return fail(model.error) if model.error else good(f"{model.name}: {model.model_type}")


@check("model.files", "every shard of its index, whole", "hf download MODEL", LINE)
@of_model
def files(_: Case, model: Model) -> Answer:
    """A download that broke off leaves a shard shorter than its header says."""
    if model.broken is None:
        return idle("its weights are not here, or need not be")
    return fail("; ".join(model.broken[:5])) if model.broken else good("all there")


@check("model.memory", "weights, one sequence and what comes beside fit on the cards", "set a larger engine.tp", LINE)
@of_model
def memory(case: Case, model: Model) -> Answer:
    """At the tensor-parallel size that was asked for."""
    if 0 < len(case.facts.cards) < case.facts.subject.tp:
        return fail(f"{len(case.facts.cards)} GPUs answer, {case.facts.subject.tp} are to serve it together")
    left = room(model, case.facts.cards, case.facts.subject)
    if left is None:
        return idle(FEW_CARDS)
    tp, one = case.facts.subject.tp, sequence(model, case.facts.subject.context)
    words = f"{model.weights / GIB:.1f} GiB of weights over {tp} GPU{'s' if tp > 1 else ''}"
    words += f", {left / GIB:.1f} GiB left for sequences of {one / GIB:.2f}"
    return good(words) if left >= one else fail(words)


@check(
    "model.concurrency",
    f"{FEW} sequences of the planned length at once",
    "shorten model.context, or kv_dtype: fp8",
    LINE,
)
@of_model
def concurrency(case: Case, model: Model) -> Answer:
    """Of a hybrid model only some layers hold a cache; the others a state a sequence."""
    left = room(model, case.facts.cards, case.facts.subject)
    if left is None:
        return idle(FEW_CARDS)
    one = sequence(model, case.facts.subject.context)
    if left < one:
        return idle("it does not fit")
    words = f"{left // one} of {case.facts.subject.context} tokens, {model.cache_per_token // 1024} KiB a token"
    return good(words) if left // one >= FEW else warn(words)


@check("model.context", "the planned length within the model's", "set a smaller model.context", LINE)
@of_model
def context(case: Case, model: Model) -> Answer:
    """Beyond it positions mean nothing."""
    if model.context is None:
        return unknown("its config.json does not tell")
    words = f"{case.facts.subject.context} of {model.context} tokens"
    return good(words) if case.facts.subject.context <= model.context else fail(words)


@check("model.dtype", "numbers that the cards compute with", "use a 16-bit checkpoint", LINE)
@of_model
def dtype(case: Case, model: Model) -> Answer:
    """FP8 from 8.9 on, NVFP4 from 10.0 on; below they are unpacked, where they run at all."""
    capabilities = [float(c.capability) for c in case.facts.cards if c.capability]
    if not capabilities:
        return idle(FEW_CARDS)
    least = {"fp8": 8.9, "nvfp4": 10.0}.get(model.quantised, 8.0)
    words = f"{model.quantised or '16 bits'} on {min(capabilities)}"
    return good(words) if min(capabilities) >= least else warn(f"{words}: native from {least} on")


@check("model.split", "heads that the tensor-parallel size divides", "set another engine.tp", LINE)
@of_model
def split(case: Case, model: Model) -> Answer:
    """Heads go whole to a card."""
    tp = case.facts.subject.tp
    return (
        good(f"TP {tp}") if tp in model.fits_tp else fail(f"TP {tp}; possible are {', '.join(map(str, model.fits_tp))}")
    )


@check("model.template", "a chat template", "name a folder whose tokenizer has one as model.tokenizer", LINE)
@of_model
def template(_: Case, model: Model) -> Answer:
    """Without one a renderer of Reflash's own must know the model."""
    if model.template is None:
        return idle("its files are not here")
    return good("there is one") if model.template else warn("there is none")


@check("model.revision", "one commit of the Hub for the whole run", "engine.revision: COMMIT", LINE)
@of_model
def revision(_: Case, model: Model) -> Answer:
    """A branch may move between two starts of an engine, or between two machines."""
    if model.pinned is None:
        return idle("it is a folder")
    if model.pinned:
        return good(model.revision or "a commit")
    moved = f"; the Hub has {model.newest} by now" if model.newest not in ("", model.revision) else ""
    return warn(f"a branch, here at {model.revision}{moved}")


@check("model.room", "room for the weights that are still to be fetched", "df -h; free some, or set HF_HOME", LINE)
@of_model
def fetching(case: Case, model: Model) -> Answer:
    """Weights of the Hub go to its cache first."""
    free = case.facts.system.cache_free
    if not model.to_fetch:
        return idle("nothing is to be fetched")
    if free is None:
        return unknown("the free room of the cache could not be read")
    words = f"{model.to_fetch / GIB:.1f} GiB to fetch, {free / GIB:.0f} GiB free"
    return good(words) if free > model.to_fetch + GIB else fail(words)


@check("model.generation", "a generation_config.json with the ids that end an answer", "hf download MODEL", LINE)
@of_model
def generation(_: Case, model: Model) -> Answer:
    """Without it an engine stops at the one id of config.json, and samples by its own defaults."""
    if model.generation is None or not model.generation.stops:
        return warn("there is none" if model.generation is None else "it names no id that ends an answer")
    asked = ", ".join(f"{name} {value:g}" for name, value in model.generation.sampling.items())
    return good(f"ends at {', '.join(map(str, model.generation.stops))}" + (f"; {asked}" if asked else ""))
