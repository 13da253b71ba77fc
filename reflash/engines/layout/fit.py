"""How many GPUs a model needs, and how many of it fit on those there are. Pure: the arithmetic stands in the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from reflash.engines.layout.gpus import Gpu
from reflash.engines.layout.model import ModelFacts
from reflash.errors import ConfigError

GIB = 2**30
# Beside weights and cache: the CUDA context, activations of a prefill, captured graphs. Seen: 2 to 4 GiB with an 8B and
# a 27B model at 512 and 256 sequences.
BESIDE = 3 * GIB
SIZES = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Ask:
    """What the config wants of the layout; None is for the arithmetic to find."""

    context: int  # tokens of the longest sequence
    share: float  # of a GPU's memory that the engine may use
    cache_bytes: float = 2.0  # of one number in the cache
    tp: int | None = None
    replicas: int | None = None
    named: bool = False  # the config names the GPUs: they are used, whoever uses them too


@dataclass(frozen=True, slots=True)
class Layout:
    """Which GPUs serve together: one tuple a replica."""

    tp: int
    replicas: tuple[tuple[Gpu, ...], ...]
    notes: tuple[str, ...]  # what was decided and by which figures, for the log


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes that each GPU of a group needs, at the least."""

    tp: int
    weights: int
    sequence: int  # one sequence of the whole context

    @property
    def all(self) -> int:
        """With what comes beside."""
        return self.weights + self.sequence + BESIDE

    def __str__(self) -> str:
        return (
            f"TP {self.tp}: {_gib(self.weights)} of weights + {_gib(self.sequence)} for one whole sequence + "
            f"{_gib(BESIDE)} beside = {_gib(self.all)} GiB a GPU"
        )


def lay_out(gpus: Sequence[Gpu], model: ModelFacts, ask: Ask, name: str) -> Layout:
    """The least tensor-parallel size that fits, and as many replicas as there is room for.

    Raises ConfigError with the arithmetic where nothing fits, or where the config asks for more GPUs than there are.
    """
    if ask.tp is not None and not _can_be_split(model, ask.tp):
        raise ConfigError(
            f"engine.tp: the heads of {name} ({', '.join(map(str, model.splits))}; {model.kv_heads} for keys and "
            f"values) cannot be split over {ask.tp} GPUs; over {', '.join(map(str, sizes(model)))} they can"
        )
    notes: list[str] = []
    free = list(gpus) if ask.named else _free(gpus, ask, notes)
    if not free:
        raise ConfigError(f"no GPU to serve {name}: {'; '.join(notes) or 'none is there'}. {_what_fits(model, ask)}")
    tp = ask.tp or _least(free, model, ask, name)
    groups = _groups(free, tp, model, ask)
    wanted = len(groups) if ask.replicas is None else ask.replicas
    if not groups or wanted > len(groups):
        raise ConfigError(
            f"engine: {wanted or 1} replicas of {tp} GPUs are {(wanted or 1) * tp}, but {len(free)} can be used "
            f"({_cards(free)}){'; ' if notes else ''}{'; '.join(notes)}; ask for fewer `replicas` or a smaller `tp`"
        )
    need = need_of(model, ask, tp)
    room = _usable(groups[0][0], ask) - need.all + need.sequence
    notes.append(_decided(name, groups[:wanted], need, max(room, 0), model, ask))
    if room < need.sequence:
        notes.append(f"by these figures {name} does not fit with TP {tp}; the config asks for it")
    return Layout(tp, tuple(groups[:wanted]), tuple(notes))


def sizes(model: ModelFacts) -> list[int]:
    """Tensor-parallel sizes that the model's heads can be split by."""
    return [tp for tp in SIZES if _can_be_split(model, tp)]


def _can_be_split(model: ModelFacts, tp: int) -> bool:
    """Heads go whole to a GPU, the same number to each; of few KV heads several GPUs hold the same one."""
    return all(count % tp == 0 for count in model.splits) and (model.kv_heads % tp == 0 or tp % model.kv_heads == 0)


def need_of(model: ModelFacts, ask: Ask, tp: int) -> Need:
    """What each of `tp` GPUs needs; a GPU holds one KV head at the least."""
    cache = model.cache_per_token * ask.cache_bytes / 2 * ask.context / min(tp, model.kv_heads)
    return Need(tp, model.weights // tp, round(cache) + model.state_per_sequence // tp)


def _usable(gpu: Gpu, ask: Ask) -> int:
    return round(gpu.memory * ask.share)


def _free(gpus: Sequence[Gpu], ask: Ask, notes: list[str]) -> list[Gpu]:
    """Those whose memory nobody else uses: an engine that finds less than its share ends at once."""
    busy = [g for g in gpus if g.used > g.memory - _usable(g, ask) + GIB]
    notes += [
        f"GPU {g.index} is left out: {_gib(g.used)} of its {_gib(g.memory)} GiB are in use (`gpus` can name it)"
        for g in busy
    ]
    return [g for g in gpus if g not in busy]


def _groups(gpus: Sequence[Gpu], tp: int, model: ModelFacts, ask: Ask) -> list[tuple[Gpu, ...]]:
    """Neighbours of one kind, `tp` together; kinds that are too small are left out where the size was not asked for."""
    need = need_of(model, ask, tp).all
    kept = [g for g in gpus if ask.tp is not None or _usable(g, ask) >= need]
    groups: list[tuple[Gpu, ...]] = []
    for _, cards in groupby(sorted(kept, key=lambda g: (g.name, g.index)), key=lambda g: g.name):
        kind = list(cards)
        groups += [tuple(kind[i : i + tp]) for i in range(0, len(kind) - tp + 1, tp)]
    return sorted(groups, key=lambda group: group[0].index)


def _least(gpus: Sequence[Gpu], model: ModelFacts, ask: Ask, name: str) -> int:
    for tp in sizes(model):
        if tp <= len(gpus) and _groups(gpus, tp, model, ask):
            return tp
    tried = "\n".join(f"  {need_of(model, ask, tp)}" for tp in sizes(model) if tp <= len(gpus))
    raise ConfigError(
        f"{name} fits on no layout of this machine.\n{tried}\n"
        f"  There: {_cards(gpus)}, of which an engine may use {ask.share:.0%} "
        f"(gpu_memory_utilization), {_gib(max(_usable(g, ask) for g in gpus))} GiB a GPU\n"
        f"  {_what_fits(model, ask)}"
    )


def _what_fits(model: ModelFacts, ask: Ask) -> str:
    """GPUs that would do, by number and memory."""
    found = [f"{tp} of {-(-need_of(model, ask, tp).all // round(GIB * ask.share))} GiB" for tp in sizes(model)[:4]]
    return (
        f"It would fit on GPUs of this memory: {', or '.join(found)}; a smaller model.context "
        f"(now {ask.context}), an 8-bit `kv_dtype` or a quantised model needs less"
    )


def _decided(name: str, groups: Sequence[tuple[Gpu, ...]], need: Need, room: int, model: ModelFacts, ask: Ask) -> str:
    replicas = f"{len(groups)} replica{'s' if len(groups) != 1 else ''}"
    where = "; ".join(",".join(str(g.index) for g in group) for group in groups)
    state = f" ({model.state_per_sequence / need.tp / 2**20:.0f} MiB of it whatever its length)" if model.hybrid else ""
    return (
        f"{name}: {replicas} with TP {need.tp} on GPUs {where} ({groups[0][0].name}). {need} (weights by "
        f"{model.weights_from}); {_gib(room)} GiB left for sequences, {room // max(need.sequence, 1)} of "
        f"{ask.context} tokens at once{state}"
    )


def _cards(gpus: Sequence[Gpu]) -> str:
    kinds = groupby(sorted(gpus, key=lambda g: g.name), key=lambda g: (g.name, g.memory))
    return ", ".join(f"{len(list(cards))} x {name} of {_gib(memory)} GiB" for (name, memory), cards in kinds)


def _gib(size: float) -> str:
    return f"{size / GIB:.1f}"
