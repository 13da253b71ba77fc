"""Every key that a run config may hold, by its dotted name, and the key that a wrong one was meant for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from reflash.config.run import RunConfig

_NEAR = 0.7  # of difflib: `temprature` and `gpu` pass, `name` for `model` does not
_MOST = 3  # keys named at once


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a config."""

    name: str  # dotted
    kinds: tuple[str, ...] = ()  # of engines that take it; none where it is no engine's
    is_group: bool = False

    @property
    def last(self) -> str:
        """Its own name within its group."""
        return self.name.rpartition(".")[2]

    @property
    def group(self) -> str:
        """The dotted name of its group, "" at the top."""
        return self.name.rpartition(".")[0]


@cache
def all_keys() -> tuple[Key, ...]:
    """Every key, in the order of the models; one that several kinds of engines take stands once."""
    found: dict[str, Key] = {}
    for key in _keys(RunConfig, "", ()):
        kinds = (*found[key.name].kinds, *key.kinds) if key.name in found else key.kinds
        found[key.name] = Key(key.name, kinds, key.is_group)
    return tuple(found.values())


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field's type names: none of a plain value, several of a union."""
    if get_origin(annotation) is Annotated:
        return models_in(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [model for one in get_args(annotation) for model in models_in(one)]
    return [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []


def _keys(model: type[BaseModel], prefix: str, kinds: tuple[str, ...]) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        inner = models_in(field.annotation)
        yield Key(f"{prefix}{name}", kinds, bool(inner))
        for one in inner:
            kind = one.model_fields.get("kind")
            yield from _keys(one, f"{prefix}{name}.", kinds if kind is None else (str(kind.default),))


def keys_of(group: str, kind: str | None = None) -> list[Key]:
    """The keys of a group, of an engine those that its kind takes."""
    return [key for key in all_keys() if key.group == group and (kind is None or not key.kinds or kind in key.kinds)]


def unknown_key(name: str, kind: str | None) -> str:
    """What to say of a key that nothing has; `kind` is the engine's, where that is known."""
    group, _, last = name.rpartition(".")
    own = keys_of(group, kind)
    if near := _near(last, own):
        return f"no such key; did you mean {near[0].name}?"
    others = [key for key in all_keys() if key not in own]
    there = [key for key in others if key.name == name]  # of another kind of engine
    if there:
        return f"no key of kind {kind}, but of {_or(there[0].kinds)}"
    same = [key for key in others if key.last == last] or _near(last, others)
    if same:
        return f"no such key; did you mean {_or(_with_kinds(key, kind) for key in same[:_MOST])}?"
    where = f"{group} has" if group else "there are"
    return f"no such key; {where} {', '.join(key.last for key in own)}"


def kinds_of(group: str) -> tuple[str, ...]:
    """The kinds that a group comes in; none where it has but one shape."""
    return next((key.kinds for key in all_keys() if key.name == f"{group}.kind"), ())


def no_such_kind(group: str, given: object) -> str:
    """What to say of a kind that there is not, or that is missing (None)."""
    kinds = kinds_of(group)
    near = get_close_matches(given, kinds, 1, _NEAR) if isinstance(given, str) else []
    meant = f"did you mean {near[0]}? There" if near else "there"
    return f"{'is missing' if given is None else 'no such kind'}; {meant} are {', '.join(kinds)}"


def _near(last: str, keys: Sequence[Key]) -> list[Key]:
    close = get_close_matches(last, {key.last for key in keys}, 1, _NEAR)
    return [key for key in keys if key.last in close]


def _with_kinds(key: Key, kind: str | None) -> str:
    """A key's name, with its kinds of engines where the one at hand is none of them."""
    return key.name if not key.kinds or kind in key.kinds else f"{key.name} (of kind {_or(key.kinds)})"


def _or(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
