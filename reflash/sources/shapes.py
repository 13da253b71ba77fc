"""Which columns of a row hold the conversation, in the shapes that public sets have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from reflash.printable import printable
from reflash.sources.content import MEDIA
from reflash.sources.raw import Unfit

CONVERSATION = ("messages", "conversations", "conversation", "dialog", "dialogue", "chat", "turns", "items")
TOKENIZED = ("input_ids", "loss_mask")
ALREADY_TOKENIZED = "already tokenized"  # what the reason of such a row begins with ...
AUDIT_IT = "; `reflash inspect` audits such a set"  # ... and ends with
_TOKENIZED_ELSEWHERE = ("token_ids", "assistant_masks", "assistant_mask", "completion_mask")
_ASKS = ("prompt", "instruction", "question", "problem", "query")
_ASKS_OF_PAIRS = ("user", "input")  # too plain a name where no answer stands beside it
_ANSWERS = ("response", "output", "answer", "solution", "completion", "chosen", "assistant")
_SYSTEM = ("system", "system_prompt")
_TOOLS = ("tools", "functions")
IDS = ("id", "uuid", "conversation_id", "prompt_id", "_id")
_PREFIX = ("continue_final_message", "prefix")


@dataclass(frozen=True, slots=True)
class Shape:
    """A row taken apart, nothing of it judged yet."""

    messages: list[Any]
    id: Any = None
    tools: Any = None
    system: str = ""
    prefix: bool = False  # the last answer is the beginning of one to continue
    extra: dict[str, Any] | None = None
    media: dict[str, Any] | None = None  # columns that hold images or sound


def shape_of(row: Any, repairs: list[str]) -> Shape:
    """Find the conversation in a row. Raises Unfit listing the columns seen where there is none."""
    if isinstance(row, list):
        if _is_messages(row):
            repairs.append("row is a list of messages, not an object")
            return Shape(row)
        raise Unfit("row is a list, not an object")
    if not isinstance(row, dict):
        raise Unfit(f"row is {'null' if row is None else 'a ' + type(row).__name__}, not an object")
    used: set[str] = set()
    messages = _messages(row, used, repairs)
    return Shape(
        messages,
        id=_first(row, IDS, used),
        tools=_first(row, _TOOLS, used),
        system=_system(row, used),
        prefix=_first(row, _PREFIX, used) is True,
        extra={key: item for key, item in row.items() if key not in used and item is not None},
        media=row if any(key in row for key in MEDIA) else None,
    )


def is_tokenized(row: dict[str, Any]) -> bool:
    """Whether a row holds token ids: under their usual names, or lists of integers and no conversation."""
    if all(key in row for key in TOKENIZED):
        return True
    if any(row.get(key) is not None for key in (*CONVERSATION, *_ASKS)):
        return False
    if any(key in row for key in (*TOKENIZED, *_TOKENIZED_ELSEWHERE)):
        return True
    return any(isinstance(item, list) and len(item) > 1 and type(item[0]) is int for item in row.values())


def _first(row: dict[str, Any], keys: tuple[str, ...], used: set[str]) -> Any:
    for key in keys:
        if (value := row.get(key)) is not None and value != "":
            used.add(key)
            return value
    return None


def _system(row: dict[str, Any], used: set[str]) -> str:
    for key in _SYSTEM:
        value = row.get(key)
        if isinstance(value, str) and value.strip():
            used.add(key)
            return value
    return ""


def _messages(row: dict[str, Any], used: set[str], repairs: list[str]) -> list[Any]:
    fault: Unfit | None = None
    for key in CONVERSATION:
        value = row.get(key)
        if not value:
            continue
        try:
            messages = _listed(value, key, repairs)
        except Unfit as unfit:
            fault = fault or unfit
            continue
        used.add(key)
        return messages
    if (pair := _pair(row, used)) is not None:
        return pair
    raise fault or Unfit(_why_none(row))


def _listed(value: Any, key: str, repairs: list[str]) -> list[Any]:
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise Unfit(f"{key} is text that is not JSON ({error.msg})") from error
        repairs.append(f"{key} read from JSON text")
    if isinstance(value, dict) and (rows := _transposed(value)):
        repairs.append(f"{key} was stored by columns")
        return rows
    if not isinstance(value, list):
        raise Unfit(f"{key} is a {type(value).__name__}, not a list of messages")
    if not value:
        raise Unfit(f"{key} is empty: no messages")
    return value


def _transposed(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Messages of an object that holds a list for each key, as older `datasets` stored them."""
    lists = list(value.values())
    if not ("role" in value or "from" in value) or not all(isinstance(column, list) for column in lists):
        return []
    if len({len(column) for column in lists}) != 1:
        return []
    return [dict(zip(value, items, strict=True)) for items in zip(*lists, strict=True)]


def _pair(row: dict[str, Any], used: set[str]) -> list[Any] | None:
    """Messages of a question and its answer; of a preference pair, the question and the chosen answer."""
    answer = next((key for key in _ANSWERS if row.get(key) is not None), None)
    asks = (*_ASKS, *(_ASKS_OF_PAIRS if any(key in row for key in _ANSWERS) else ()))
    ask = next((key for key in asks if row.get(key) is not None), None)
    if ask is None:
        if answer == "chosen" and _is_messages(row["chosen"]):
            used.add("chosen")
            return list(row["chosen"])
        return None
    used.add(ask)
    if answer is not None:
        used.add(answer)
    return _asked(row, ask, used) + _answered(row[answer] if answer else None)


def _is_messages(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(map(_is_message, value))


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and ("role" in item or "from" in item)


def _asked(row: dict[str, Any], ask: str, used: set[str]) -> list[Any]:
    value = row[ask]
    if isinstance(value, list) and any(_is_message(item) for item in value):
        return list(value)
    more = row.get("input")
    if ask == "instruction" and isinstance(value, str) and isinstance(more, str):
        used.add("input")
        value = f"{value}\n\n{more}" if more.strip() else value
    return [*_history(row, used), {"role": "user", "content": value}]


def _history(row: dict[str, Any], used: set[str]) -> list[Any]:
    """Earlier turns of an Alpaca row: a list of question and answer pairs."""
    turns = row.get("history")
    if not isinstance(turns, list) or not all(isinstance(t, list) and len(t) == 2 for t in turns):
        return []
    used.add("history")
    roles = ("user", "assistant")
    return [{"role": role, "content": text} for turn in turns for role, text in zip(roles, turn, strict=True)]


def _answered(value: Any) -> list[Any]:
    if _is_messages(value):
        return [value[-1]]  # a pair of conversations may repeat the question
    return [{"role": "assistant", "content": value}]


def _why_none(row: dict[str, Any]) -> str:
    seen = ", ".join(sorted(printable(str(key), 40) for key in row)[:12]) or "none"
    if is_tokenized(row):
        return f"{ALREADY_TOKENIZED} (columns: {seen}){AUDIT_IT}"
    for key in CONVERSATION:
        if key in row:
            return f"{key} is {'null' if row[key] is None else 'empty'}: no messages"
    for key in (*_ASKS, *_ASKS_OF_PAIRS):
        if key in row and row[key] is None:
            return f"{key} is null: nothing is asked"
    if (within := _rows_within(row)) is not None:
        return f"no conversation in it (columns: {seen}); {within}: write these one a line"
    return f"no conversation in it (columns: {seen}); messages, conversations or prompt and response are read"


def _rows_within(row: dict[str, Any]) -> str | None:
    """The column that seems to hold the rows of a whole set."""
    for key, value in row.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return f"{printable(str(key), 40)} holds {len(value):,} objects"
    return None
