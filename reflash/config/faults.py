"""What pydantic found wrong, in words for who wrote the config: the key, the fault, the remedy; never the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from reflash.config.keys import all_keys, keys_of, kinds_of, no_such_kind, unknown_key
from reflash.printable import printable

_PLAIN = {
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a number that ends: neither infinite nor .nan",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be text; write a number or a yes in quotes",
    "string_too_short": "must not be empty",
    "tuple_type": "must be a list: [one, two]",
    "dict_type": "must hold names and values: NAME: value",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "invalid_key": "is no name of a setting: those are text",
    "too_short": "must hold at least {min_length}",
}


def faults(error: ValidationError) -> list[str]:
    """One line a fault: `dotted.key: what is wrong with it`."""
    return [_line(one) for one in error.errors(include_url=False, include_input=False)]


def _line(error: ErrorDetails) -> str:
    path, kind = _path(error["loc"])
    context: Mapping[str, Any] = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            said = unknown_key(path, kind)
        case "missing":
            said = f"is missing{_holds(path, kind)}"
        case "union_tag_invalid" | "union_tag_not_found":
            path, said = f"{path}.kind", no_such_kind(path, context.get("tag"))
        case "model_type" | "model_attributes_type" | "dataclass_type":
            said = f"must be a group of settings{_holds(path, kind)}"
        case "literal_error":
            said = f"must be one of {str(context['expected']).replace(' or ', ', ')}"
        case name if name in _PLAIN:
            said = _PLAIN[name].format(**{k: f"{v:.12g}" if isinstance(v, float) else v for k, v in context.items()})
        case _:
            said = error["msg"].removeprefix("Value error, ")
    return f"  {printable(path) or '(top)'}: {said}"


def _path(loc: Sequence[int | str]) -> tuple[str, str | None]:
    """The key as the config writes it, and the engine's kind, which pydantic puts in between."""
    parts = [str(part) for part in loc]
    kind = parts.pop(1) if len(parts) > 1 and parts[0] == "engine" else None
    return ".".join(parts), kind


def _holds(path: str, kind: str | None) -> str:
    """What a group holds; "" for a plain key."""
    if not any(key.name == path and key.is_group for key in all_keys()):
        return ""
    if kind is None and (kinds := kinds_of(path)):
        return f"; it holds a kind ({', '.join(kinds)}) and what that kind takes"
    return f"; it holds {', '.join(key.last for key in keys_of(path, kind))}"
