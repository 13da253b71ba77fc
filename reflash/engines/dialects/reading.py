"""Reading a server's JSON with suspicion: each check here is an answer that some server has given."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import orjson

from reflash.engines.failures import failure, words
from reflash.errors import EngineGarbage, EngineLost
from reflash.printable import printable

Ended: TypeAlias = Literal["stop", "length"]
MOST = 2**31 - 1


def read_answer(raw: bytes, engine: str) -> dict[str, Any]:
    """Parse the body of a 200; raises what fits where it is cut short, no object, or an error in disguise."""
    try:
        answer = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise EngineGarbage(f"{engine}: the answer is not JSON ({error}); it begins with {raw[:80]!r}") from None
    if type(answer) is not dict:
        raise EngineGarbage(f"{engine}: the answer is a JSON {type(answer).__name__}, not an object")
    if answer.get("error") or answer.get("object") == "error":
        inner = answer["error"] if type(answer.get("error")) is dict else answer
        code = inner.get("code")
        if type(code) is int and code >= 400:
            raise failure(code, words(raw), engine)
        raise EngineGarbage(f"{engine}: answered 200 with an error: {words(raw)}")
    return answer


def read_field(answer: Mapping[str, Any], key: str, kind: type[Any], engine: str) -> Any:
    """A field that must be there and of one type (an int is no bool); raises EngineGarbage."""
    value = answer.get(key)
    if type(value) is not kind:
        found = "missing" if key not in answer else f"{type(value).__name__}, not {kind.__name__}"
        raise EngineGarbage(f"{engine}: `{key}` of the answer is {found}")
    return value


def read_text(answer: Mapping[str, Any], key: str, engine: str) -> str | None:
    """A field that is text, or null or absent; raises EngineGarbage."""
    return None if answer.get(key) is None else read_field(answer, key, str, engine)


def read_count(answer: Mapping[str, Any], key: str, engine: str) -> int:
    """A count of tokens; raises EngineGarbage where it is no whole number from 0 to what is kept as int32."""
    count: int = read_field(answer, key, int, engine)
    if not 0 <= count <= MOST:
        raise EngineGarbage(f"{engine}: `{key}` of the answer is {count}")
    return count


def read_only_choice(answer: Mapping[str, Any], engine: str) -> dict[str, Any]:
    """The one choice of an OpenAI-like answer; raises EngineGarbage where there is none or another one."""
    choices = read_field(answer, "choices", list, engine)
    if len(choices) != 1 or type(choices[0]) is not dict:
        raise EngineGarbage(f"{engine}: {len(choices)} choices in the answer, one was asked for")
    choice: dict[str, Any] = choices[0]
    return choice


def read_ids(raw: bytes, answer: Mapping[str, Any], key: str, engine: str) -> tuple[int, ...]:
    """The emitted ids under `key`.

    Raises EngineGarbage where they are no ids, or given twice in `raw` (a parser keeps only the last of two like
    keys). Quotes inside JSON text are escaped, so `"key":` is found in `raw` only as a key. None at all, another
    number than the engine counted, or one that no vocabulary has would be the same when asked again: that is for
    validation to judge.
    """
    ids = tuple(read_field(answer, key, list, engine))
    if not _fit_in_32_bits(ids):
        raise EngineGarbage(f"{engine}: `{key}` of the answer holds something else than token ids")
    if raw.count(b'"%b":' % key.encode()) > 1:
        raise EngineGarbage(f"{engine}: the answer has `{key}` twice")
    return ids


def _fit_in_32_bits(ids: Sequence[Any]) -> bool:
    """Whether all are whole numbers that can be kept as int32; an array is made quicker than each is compared."""
    try:
        array("i", ids)
    except (TypeError, OverflowError):
        return False
    return not ids or set(map(type, ids)) == {int}


def check_echo(echo: Any, sent: Sequence[int], engine: str) -> None:
    """Compare the prompt's ids as the engine repeats them, where it does; raises EngineGarbage."""
    if echo is not None and (type(echo) is not list or tuple(echo) != tuple(sent)):
        raise EngineGarbage(f"{engine}: the answer is to another prompt: the ids it repeats are not those sent")


def read_end(reason: Any, names: Mapping[str, Ended], engine: str) -> Ended:
    """Why the answer ended, by the server's `names`; raises EngineLost for an answer that was cut off."""
    if type(reason) is str and reason in names:
        return names[reason]
    if reason in ("abort", "error"):
        raise EngineLost(f"{engine}: the answer was cut off by the engine ({reason})")
    said = repr(printable(reason, 80)) if type(reason) is str else f"a {type(reason).__name__}"
    raise EngineGarbage(f"{engine}: the answer ended by {said}, which is no reason that is known")
