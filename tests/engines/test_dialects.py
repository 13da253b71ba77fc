"""What each dialect sends, and how it reads what comes back. Pure: no server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from reflash.engines.dialects.base import Dialect
from reflash.engines.dialects.registry import DIALECTS
from reflash.errors import EngineBusy, EngineGarbage, EngineLost, EngineRefused
from reflash.types import Completion, Message, ToolCall
from tests.engines.server import PATHS, prompt, said

ALL = list(DIALECTS.values())
EXACT = [d for d in ALL if d.exact]
Change = Callable[[dict[str, Any]], object]

every = pytest.mark.parametrize("dialect", ALL, ids=lambda d: d.name)
exact = pytest.mark.parametrize("dialect", EXACT, ids=lambda d: d.name)
CHAT, VLLM, SGLANG, LLAMACPP = (DIALECTS[name] for name in ("chat", "vllm", "sglang", "llamacpp"))


def read(dialect: Dialect, answer: object) -> Completion:
    raw = answer if isinstance(answer, bytes) else orjson.dumps(answer)
    return dialect.completion(raw, prompt(1, 2, 3), "engine", 0.5)


def sent(dialect: Dialect, **sampling: Any) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(dialect.body(prompt(1, 2, 3, **sampling), "m"))
    return body


def ids_of(dialect: Dialect, answer: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Where the ids are: the object and the key."""
    return {
        "vllm": lambda: (answer["choices"][0], "token_ids"),
        "sglang": lambda: (answer, "output_ids"),
        "llamacpp": lambda: (answer, "tokens"),
    }[dialect.name]()


def count_of(dialect: Dialect, answer: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Where the count of emitted tokens is."""
    return {
        "vllm": lambda: (answer["usage"], "completion_tokens"),
        "chat": lambda: (answer["usage"], "completion_tokens"),
        "sglang": lambda: (answer["meta_info"], "completion_tokens"),
        "llamacpp": lambda: (answer, "tokens_predicted"),
    }[dialect.name]()


def test_each_dialect_is_registered_under_the_name_that_the_config_knows() -> None:
    assert {name: dialect.path for name, dialect in DIALECTS.items()} == PATHS


@exact
def test_ids_are_read_with_the_counts_and_the_end(dialect: Dialect) -> None:
    whole, cut = read(dialect, said(dialect.name, [5, 6, 2])), read(dialect, said(dialect.name, [5, 6], cut=True))
    assert (whole.tokens, whole.finish_reason, whole.prompt_tokens, whole.completion_tokens) == (
        (5, 6, 2),
        "stop",
        3,
        3,
    )
    assert (cut.tokens, cut.finish_reason) == ((5, 6), "length")
    assert (whole.engine, whole.seconds, whole.exact) == ("engine", 0.5, True)


@exact
@pytest.mark.parametrize("ids", [None, "5 6 2", [5, 6, "2"], [5, 6, 2.0], [5, 6, True], [5, 2**31]])
def test_what_is_no_list_of_ids_is_garbage(dialect: Dialect, ids: Any) -> None:
    answer = said(dialect.name, [5, 6, 2])
    where, key = ids_of(dialect, answer)
    where[key] = ids
    with pytest.raises(EngineGarbage):
        read(dialect, answer)


@exact
def test_missing_ids_are_garbage(dialect: Dialect) -> None:
    answer = said(dialect.name, [5, 6, 2])
    where, key = ids_of(dialect, answer)
    del where[key]
    with pytest.raises(EngineGarbage, match=key):
        read(dialect, answer)


@exact
@pytest.mark.parametrize("ids", [[5, 6], [5, 6, 2, 9], []])
def test_ids_that_the_engine_counted_otherwise_are_left_to_validation(dialect: Dialect, ids: list[int]) -> None:
    answer = said(dialect.name, [5, 6, 2])
    where, key = ids_of(dialect, answer)
    where[key] = ids
    got = read(dialect, answer)
    assert (got.tokens, got.completion_tokens) == (tuple(ids), 3)


@exact
def test_ids_given_twice_are_garbage(dialect: Dialect) -> None:
    answer = said(dialect.name, [5, 6, 2])
    _, key = ids_of(dialect, answer)
    twice = orjson.dumps(answer).replace(b'"%b":' % key.encode(), b'"%b":[1],"%b":' % (key.encode(), key.encode()), 1)
    with pytest.raises(EngineGarbage, match="twice"):
        read(dialect, twice)


@exact
def test_text_that_looks_like_the_key_of_the_ids_does_no_harm(dialect: Dialect) -> None:
    answer = said(dialect.name, [5, 6, 2])
    _, key = ids_of(dialect, answer)
    answer["note"] = f'"{key}":[1],"{key}":[2]'
    assert read(dialect, answer).tokens == (5, 6, 2)


@every
@pytest.mark.parametrize("count", [None, "3", 3.0, -1, True])
def test_a_count_that_is_no_count_is_garbage(dialect: Dialect, count: Any) -> None:
    answer = said(dialect.name, [5, 6, 2])
    where, key = count_of(dialect, answer)
    where[key] = count
    with pytest.raises(EngineGarbage, match=key):
        read(dialect, answer)


@every
def test_an_unknown_or_missing_end_is_garbage(dialect: Dialect) -> None:
    for end in (None, "because", 3):
        answer = said(dialect.name, [5, 6, 2])
        if dialect is SGLANG:
            answer["meta_info"]["finish_reason"] = {"type": end}
        elif dialect is LLAMACPP:
            answer["stop_type"] = end
        else:
            answer["choices"][0]["finish_reason"] = end
        with pytest.raises(EngineGarbage):
            read(dialect, answer)


@pytest.mark.parametrize("dialect", [VLLM, CHAT], ids=lambda d: d.name)
def test_an_aborted_answer_is_lost(dialect: Dialect) -> None:
    answer = said(dialect.name, [5, 6, 2])
    answer["choices"][0]["finish_reason"] = "abort"
    with pytest.raises(EngineLost):
        read(dialect, answer)


@pytest.mark.parametrize(
    ("status", "kind"), [(None, EngineLost), (500, EngineLost), (503, EngineBusy), (400, EngineRefused)]
)
def test_sglang_says_in_a_200_why_it_aborted(status: int | None, kind: type[Exception]) -> None:
    answer = said("sglang", [5, 6])
    answer["meta_info"]["finish_reason"] = {"type": "abort", "message": "why", "status_code": status}
    with pytest.raises(kind, match="why"):
        read(SGLANG, answer)


@pytest.mark.parametrize("dialect", [VLLM, CHAT], ids=lambda d: d.name)
@pytest.mark.parametrize("choices", [[], None, {}, ["x"], [{}, {}]])
def test_anything_but_one_choice_is_garbage(dialect: Dialect, choices: Any) -> None:
    answer = said(dialect.name, [5, 6, 2])
    answer["choices"] = choices
    with pytest.raises(EngineGarbage):
        read(dialect, answer)


def test_vllm_answering_another_prompt_is_garbage() -> None:
    answer = said("vllm", [5, 6, 2])
    answer["choices"][0]["prompt_token_ids"] = [1, 2, 3]
    assert read(VLLM, answer).tokens == (5, 6, 2)
    answer["choices"][0]["prompt_token_ids"] = [1, 2, 4]
    with pytest.raises(EngineGarbage, match="another prompt"):
        read(VLLM, answer)


@pytest.mark.parametrize("dialect", [VLLM, SGLANG], ids=lambda d: d.name)
def test_the_engines_own_text_is_passed_on_as_it_is(dialect: Dialect) -> None:
    answer = said(dialect.name, [5, 6, 2])
    where = answer["choices"][0] if dialect is VLLM else answer
    for text, kept in [("cut short", "cut short"), ("", None), (None, None)]:
        where["text"] = text
        assert read(dialect, answer).text == kept


# The servers' neutral values are sent too: what is missing, they take from the model's files.
@pytest.mark.parametrize(
    ("dialect", "neutral"),
    [
        (VLLM, {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),
        (SGLANG, {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),
        (LLAMACPP, {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0}),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_every_sampling_value_is_sent(dialect: Dialect, neutral: dict[str, Any]) -> None:
    body = sent(dialect)
    assert neutral.items() <= body.get("sampling_params", body).items()


def test_a_request_without_a_seed_names_none() -> None:
    for dialect in ALL:
        raw = dialect.body(prompt(1, 2, seed=None), "m")
        assert b"seed" not in raw
        assert b"null" not in raw


def test_ids_budget_and_stops_are_where_each_server_looks_for_them() -> None:
    vllm, sglang, llamacpp = sent(VLLM), sent(SGLANG), sent(LLAMACPP)
    assert (vllm["prompt"], vllm["max_tokens"], vllm["stop_token_ids"], vllm["model"]) == ([1, 2, 3], 64, [2], "m")
    assert vllm["return_token_ids"] is True
    assert vllm["skip_special_tokens"] is False
    assert sglang["input_ids"] == [1, 2, 3]
    assert (sglang["sampling_params"]["max_new_tokens"], sglang["sampling_params"]["stop_token_ids"]) == (64, [2])
    assert (llamacpp["prompt"], llamacpp["n_predict"], llamacpp["return_tokens"]) == ([1, 2, 3], 64, True)


def test_chat_sends_roles_calls_results_and_reasoning_and_no_nulls() -> None:
    messages = (
        Message("system", "be brief"),
        Message("user", "weather?"),
        Message("assistant", "", reasoning="look it up", tool_calls=(ToolCall("1", "look", '{"at":"Rome"}'),)),
        Message("tool", "sunny", tool_call_id="1", name="look"),
    )
    asked = replace(prompt(1), messages=messages, tools='[{"type":"function"}]', thinking=False)
    raw = CHAT.body(asked, "m")
    body = orjson.loads(raw)
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at":"Rome"}'}}
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": "", "reasoning_content": "look it up", "tool_calls": [call]},
        {"role": "tool", "content": "sunny", "tool_call_id": "1", "name": "look"},
    ]
    assert body["tools"] == [{"type": "function"}]
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert b"null" not in raw


def chat_answer(end: str = "stop", **message: Any) -> dict[str, Any]:
    answer = said("chat", [5, 6, 2])
    answer["choices"][0]["finish_reason"] = end
    answer["choices"][0]["message"] = {"role": "assistant", **message}
    return answer


@pytest.mark.parametrize("end", ["stop", "length"])
def test_chat_passes_on_a_thought_without_an_answer(end: str) -> None:
    completion = read(CHAT, chat_answer(end, content="", reasoning_content="A."))
    assert (completion.content, completion.reasoning, completion.finish_reason) == ("", "A.", end)


def test_chat_reads_null_content_as_none() -> None:
    completion = read(CHAT, chat_answer("length", content=None, reasoning="so far"))
    assert (completion.content, completion.reasoning) == (None, "so far")


def test_chat_passes_control_tokens_on_for_the_judge() -> None:
    completion = read(CHAT, chat_answer(content="Hi<|im_end|>", reasoning="<|im_start|>assistant"))
    assert (completion.content, completion.reasoning) == ("Hi<|im_end|>", "<|im_start|>assistant")


def test_chat_reads_calls_with_arguments_as_text_or_object() -> None:
    calls = [
        {"id": "1", "type": "function", "function": {"name": "a", "arguments": '{"x": 1}'}},
        {"type": "function", "function": {"name": "b", "arguments": {"y": 2}}},
    ]
    completion = read(CHAT, chat_answer("tool_calls", content=None, tool_calls=calls))
    assert completion.tool_calls == (ToolCall("1", "a", '{"x": 1}'), ToolCall("", "b", '{"y":2}'))
    assert completion.finish_reason == "stop"


@pytest.mark.parametrize(
    "message",
    [
        {"content": 3},
        {"content": ["parts"]},
        {"content": "x", "reasoning": {}},
        {"content": "x", "tool_calls": "x"},
        {"content": "x", "tool_calls": [3]},
        {"content": "x", "tool_calls": [{"function": {"arguments": "{}"}}]},
        {"content": "x", "tool_calls": [{"function": {"name": "a"}}]},
    ],
)
def test_chat_refuses_to_read_a_message_of_another_shape(message: dict[str, Any]) -> None:
    with pytest.raises(EngineGarbage):
        read(CHAT, chat_answer(**message))


def test_chat_does_not_guess_between_two_contents() -> None:
    raw = orjson.dumps(chat_answer(content="one")).replace(b'"content":', b'"content":"two","content":')
    with pytest.raises(EngineGarbage, match="content twice"):
        read(CHAT, raw)


def test_chat_takes_a_filtered_answer_for_a_refusal() -> None:
    with pytest.raises(EngineRefused, match="filtered"):
        read(CHAT, chat_answer("content_filter", content=""))
