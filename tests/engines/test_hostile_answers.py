"""Whatever a server sends, what reaches the run's files fits in them, and what reaches people is a line of text."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from reflash.engines.dialects.base import Dialect
from reflash.engines.dialects.registry import DIALECTS
from reflash.engines.failures import WORDS, failure, told, words
from reflash.errors import EngineError, EngineGarbage, EngineLost
from reflash.ledger.schema import turn_rows, turn_table
from reflash.types import Completion, Turn
from tests.engines.server import prompt, said

every = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda d: d.name)
CHAT, SGLANG = DIALECTS["chat"], DIALECTS["sglang"]
NASTY = "red \x1b[31m\x00\u202e\ud800\nnew line"


def read(dialect: Dialect, answer: object) -> Completion:
    raw = answer if isinstance(answer, bytes) else orjson.dumps(answer)
    return dialect.completion(raw, prompt(1, 2, 3), "engine", 0.5)


def fault(dialect: Dialect, raw: bytes) -> str:
    """What is said of an answer that cannot be read, "" for one that can."""
    try:
        read(dialect, raw)
    except EngineError as error:
        return str(error)
    return ""


def with_count(dialect: Dialect, which: str, count: Any) -> dict[str, Any]:
    """A good answer but for one count, of the prompt or of what was emitted."""
    answer = said(dialect.name, [5, 6, 2])
    if dialect.name == "llamacpp":
        answer["tokens_evaluated" if which == "prompt" else "tokens_predicted"] = count
    else:
        answer["meta_info" if dialect is SGLANG else "usage"][f"{which}_tokens"] = count
    return answer


def chat(**message: Any) -> dict[str, Any]:
    answer = said("chat", [5])
    answer["choices"][0]["message"] = {"role": "assistant", "content": "x", **message}
    return answer


def deep(levels: int, opens: str = '{"a":', closes: str = "}") -> bytes:
    return (opens * levels + "1" + closes * levels).encode()


@every
@pytest.mark.parametrize("which", ["prompt", "completion"])
@pytest.mark.parametrize("count", [2**31, 2**32 + 3, 2**63, 10**30, -1, -(2**31), 1e300, 2.5, "3", None, [], True])
def test_a_count_that_no_file_of_the_run_can_hold_is_garbage(dialect: Dialect, which: str, count: Any) -> None:
    raw = orjson.dumps(with_count(dialect, which, "HERE")).replace(b'"HERE"', str(count).encode())
    if isinstance(count, str | list | None) or count is True:
        raw = orjson.dumps(with_count(dialect, which, count))
    with pytest.raises(EngineGarbage):
        read(dialect, raw)


@every
def test_the_largest_counts_that_are_taken_can_be_kept(dialect: Dialect) -> None:
    got = read(dialect, with_count(dialect, "prompt", 2**31 - 1))
    counts = {"prompt_tokens": got.prompt_tokens, "completion_tokens": got.completion_tokens}
    turn = Turn("c", 0, 1, (1,), got.tokens, got.finish_reason, **counts)
    assert turn_rows(turn_table([turn])) == [turn]


@every
@pytest.mark.parametrize(
    "end", [NASTY.replace("\ud800", ""), "x" * 10_000, ["stop"], {"type": "stop"}, "error", "eos\n"]
)
def test_an_end_of_no_known_name_is_told_in_a_short_printable_line(dialect: Dialect, end: Any) -> None:
    answer = said(dialect.name, [5, 6, 2])
    if dialect is SGLANG:
        answer["meta_info"]["finish_reason"] = {"type": end}
    elif dialect.name == "llamacpp":
        answer["stop_type"] = end
    else:
        answer["choices"][0]["finish_reason"] = end
    with pytest.raises((EngineGarbage, EngineLost)) as caught:
        read(dialect, answer)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@every
@pytest.mark.parametrize("levels", [300, 900, 1000, 1020])
def test_depth_in_an_answer_is_read_past_or_garbage(dialect: Dialect, levels: int) -> None:
    whole = orjson.dumps(said(dialect.name, [5, 6, 2]))
    for nested in (deep(levels), deep(levels, "[", "]")):
        for key in (b"note", b"error", b"choices", b"meta_info", b"stop_type"):
            assert fault(dialect, whole[:-1] + b',"%b":%b}' % (key, nested)).isprintable()


@pytest.mark.parametrize("levels", [300, 600, 1000])
def test_arguments_too_deep_to_be_written_are_garbage(levels: int) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "HERE"}}
    raw = orjson.dumps(chat(tool_calls=[call])).replace(b'"HERE"', deep(levels))
    with pytest.raises(EngineGarbage, match="too deep"):
        read(CHAT, raw)


@pytest.mark.parametrize("field", ["content", "reasoning", "reasoning_content"])
def test_half_a_character_in_a_text_is_garbage(field: str) -> None:
    raw = orjson.dumps(chat(**{field: "HERE"})).replace(b"HERE", rb"half \ud83d of one")
    with pytest.raises(EngineGarbage):
        read(CHAT, raw)


@pytest.mark.parametrize("field", ["id", "name", "arguments"])
def test_half_a_character_in_a_call_is_garbage(field: str) -> None:
    function = {"name": "f", "arguments": "{}"}
    call: dict[str, Any] = {"id": "1", "function": function}
    (call if field == "id" else function)[field] = "HERE"
    with pytest.raises(EngineGarbage):
        read(CHAT, orjson.dumps(chat(tool_calls=[call])).replace(b"HERE", rb"\ud83d"))


def test_odd_text_that_utf8_knows_is_kept_as_it_is() -> None:
    odd = "nul \x00 \u202e \ufdd0 \U0001f642\r\n"
    got = read(CHAT, chat(content=odd, reasoning=odd))
    turn = Turn("c", 0, 1, (1,), (2,), "stop", content=got.content or "", reasoning=got.reasoning)
    assert turn_rows(turn_table([turn])) == [turn]


def test_a_field_given_twice_is_named_in_a_printable_line() -> None:
    raw = orjson.dumps(chat()).replace(b'"role":', rb'"\u001b[31m":1,"\u001b[31m":2,"role":')
    with pytest.raises(EngineGarbage, match="twice") as caught:
        read(CHAT, raw)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("levels", [9, 300, 1000, 1020, 5000])
@pytest.mark.parametrize("key", ["error", "message", "detail", "other"])
def test_a_complaint_of_any_depth_has_words(key: str, levels: int) -> None:
    said = words(deep(levels, f'{{"{key}":'))
    assert said.isprintable()
    assert 0 < len(said) <= WORDS


def test_the_message_within_a_complaint_is_its_words() -> None:
    assert words(b'{"error": {"message": "too long", "code": 400}}') == "too long"
    assert words(b'{"detail": [{"msg": "no such field"}]}') == '[{"msg":"no such field"}]'
    assert told({"type": "abort", "message": "why"}) == "why"


@pytest.mark.parametrize(
    "raw", [b'{"message": "red \\u001b[31m\\u202e\\nnext"}', b"red \x1b[31m\xff\x00\r\nnext", b"\x1b]0;title\x07" * 500]
)
def test_the_words_of_a_complaint_do_nothing_to_a_terminal(raw: bytes) -> None:
    said = words(raw)
    assert said.isprintable()
    assert len(said) <= WORDS
    assert str(failure(500, said, "engine")).isprintable()


@pytest.mark.parametrize("message", [NASTY.replace("\ud800", ""), {"a": 1}, None, "x" * 5000])
def test_why_sglang_broke_off_is_told_in_a_printable_line(message: Any) -> None:
    answer = said("sglang", [5])
    answer["meta_info"]["finish_reason"] = {"type": "abort", "message": message}
    with pytest.raises(EngineLost) as caught:
        read(SGLANG, answer)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2 * WORDS
