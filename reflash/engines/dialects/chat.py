"""Any OpenAI-like server's `/v1/chat/completions`: text in, text out, so its rows are not exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from json import loads
from typing import Any

import orjson

from reflash.engines.dialects.base import Metrics
from reflash.engines.dialects.reading import (
    Ended,
    read_answer,
    read_count,
    read_end,
    read_field,
    read_only_choice,
    read_text,
)
from reflash.errors import EngineGarbage, EngineRefused
from reflash.messages import message_dict
from reflash.printable import printable
from reflash.types import Completion, Prompt, ToolCall

ENDS: dict[str, Ended] = {"stop": "stop", "tool_calls": "stop", "function_call": "stop", "length": "length"}


class Chat:
    """Messages in, a message out."""

    name = "chat"
    exact = False
    path = "/v1/chat/completions"
    metrics = Metrics()

    def body(self, prompt: Prompt, model: str) -> bytes:
        """The JSON of a request; raises EngineRefused where the prompt carries no messages.

        What OpenAI's own API does not know (top_k, min_p, repetition_penalty) is sent only where it is not neutral.
        """
        if not prompt.messages:
            raise EngineRefused(
                f"{prompt.conversation}, turn {prompt.turn}: a chat server needs messages, there are none"
            )
        s = prompt.sampling
        body: dict[str, Any] = {
            "model": model,
            "messages": [message_dict(message) for message in prompt.messages],
            "max_tokens": prompt.max_new_tokens,
            "temperature": s.temperature,
            "top_p": s.top_p,
            "chat_template_kwargs": {"enable_thinking": prompt.thinking},
        }
        if s.presence_penalty:
            body["presence_penalty"] = s.presence_penalty
        if s.top_k:
            body["top_k"] = s.top_k
        if s.min_p:
            body["min_p"] = s.min_p
        if s.repetition_penalty != 1.0:
            body["repetition_penalty"] = s.repetition_penalty
        if s.seed is not None:
            body["seed"] = s.seed
        if prompt.tools:
            body["tools"] = orjson.Fragment(prompt.tools)
        return orjson.dumps(body)

    def completion(self, raw: bytes, prompt: Prompt, engine: str, seconds: float) -> Completion:
        """Read an answer: content and reasoning as they stand, null as None."""
        answer = read_answer(raw, engine)
        _check_twins(raw, engine)
        choice = read_only_choice(answer, engine)
        reason = choice.get("finish_reason")
        if reason == "content_filter":
            raise EngineRefused(f"{engine}: {prompt.conversation}, turn {prompt.turn}: filtered by the server")
        ended = read_end(reason, ENDS, engine)
        message = read_field(choice, "message", dict, engine)
        usage = read_field(answer, "usage", dict, engine)
        reasoning = read_text(message, "reasoning", engine)
        return Completion(
            tokens=(),
            finish_reason=ended,
            engine=engine,
            prompt_tokens=read_count(usage, "prompt_tokens", engine),
            completion_tokens=read_count(usage, "completion_tokens", engine),
            seconds=seconds,
            content=read_text(message, "content", engine),
            reasoning=read_text(message, "reasoning_content", engine) if reasoning is None else reasoning,
            tool_calls=_calls(message, engine),
            exact=False,
        )


def _calls(message: Mapping[str, Any], engine: str) -> tuple[ToolCall, ...]:
    if message.get("tool_calls") is None:
        return ()
    calls = []
    for call in read_field(message, "tool_calls", list, engine):
        if type(call) is not dict:
            raise EngineGarbage(f"{engine}: `tool_calls` of the answer holds a {type(call).__name__}, not a call")
        function = read_field(call, "function", dict, engine)
        name = read_field(function, "name", str, engine)
        arguments = function.get("arguments")
        if type(arguments) is not str:  # some servers give the object itself
            arguments = _text_of(read_field(function, "arguments", dict, engine), engine)
        calls.append(ToolCall(read_text(call, "id", engine) or "", name, arguments))
    return tuple(calls)


def _text_of(arguments: dict[str, Any], engine: str) -> str:
    try:
        return orjson.dumps(arguments).decode()
    except TypeError:  # over 254 levels
        raise EngineGarbage(f"{engine}: the arguments of a call are nested too deep") from None


def _check_twins(raw: bytes, engine: str) -> None:
    """Without ids to prove a text, two fields of one name leave it open which was meant; raises EngineGarbage."""
    try:
        loads(raw, object_pairs_hook=lambda pairs: _no_twins(pairs, engine))
    except RecursionError:
        raise EngineGarbage(f"{engine}: the answer is nested too deep") from None


def _no_twins(pairs: list[tuple[str, Any]], engine: str) -> None:
    keys = Counter(key for key, _ in pairs)
    if len(keys) != len(pairs):
        twins = sorted(key for key, times in keys.items() if times > 1)
        raise EngineGarbage(f"{engine}: the answer has {printable(', '.join(twins))} twice")
