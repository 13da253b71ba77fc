"""A chat format small enough to read: one id a byte, a few merges, a few control ids. Obeys the Renderer protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from reflash.errors import RenderError
from reflash.types import Answer, Message, ToolCall

END, STOP, SYSTEM, USER, ASSISTANT, TOOL, THINK, THOUGHT, CALL, CALLED, FILE = range(11)
MARKS = (
    *("<|end|>", "<|stop|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"),
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<|file|>"),
)
ROLES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL}
BYTES = 16  # byte b is id 16 + b
MERGED = (b"the ", b"ing", b"aa")  # one id each: "a", "a" is a spelling that encode never gives
FIRST_MERGED = BYTES + 256
VOCABULARY = 300  # the last ids are padding: no token


@dataclass(frozen=True, slots=True)
class FakeRenderer:
    """`thinks`: who writes `<think>`: nobody, the model, or the prompt. `refuses`: a text that the template refuses."""

    thinks: Literal["never", "model", "prompt"] = "never"
    calls: bool = True
    refuses: str = ""

    @property
    def stop_ids(self) -> tuple[int, ...]:
        return END, STOP

    @property
    def vocabulary(self) -> int:
        return VOCABULARY

    @property
    def control_ids(self) -> frozenset[int]:
        thinking = {THINK, THOUGHT} if self.thinks != "never" else set()
        calling = {CALL, CALLED} if self.calls else set()
        return frozenset({*range(THINK), FILE} | thinking | calling)

    @property
    def digest(self) -> str:
        return f"fake/{self.thinks}/{self.calls}/{self.refuses}"

    def prompt(self, messages: Sequence[Message], tools: str, *, thinking: bool) -> tuple[int, ...]:
        if tools and not self.calls:
            raise RenderError("this template knows no tools")
        ids: list[int] = []
        if tools:
            ids += [SYSTEM, *self.encode(tools), END]
        for message in messages:
            if self.refuses and self.refuses in message.content:
                raise RenderError(f"this template refuses {self.refuses}")
            ids += [ROLES[message.role], *self._body(message), END]
        return (*ids, ASSISTANT, *self._opening(thinking))

    def answer(self, prompt: Sequence[int], output: Sequence[int], tools: str = "") -> Answer:
        end = min((i for i, one in enumerate(output) if one in self.stop_ids), default=len(output))
        ids = list(output[:end])
        thinking: Literal["none", "closed", "open"] = "none"
        reasoning = None
        if self.thinks != "never" and (prompt[-1:] == (THINK,) or ids[:1] == [THINK]):
            ids = ids[1:] if ids[:1] == [THINK] else ids
            if THOUGHT not in ids:
                return Answer("", self.decode(ids), (), "open")
            close = ids.index(THOUGHT)
            thinking, reasoning, ids = "closed", self.decode(ids[:close]) or None, ids[close + 1 :]
        first = ids.index(CALL) if self.calls and CALL in ids else len(ids)
        return Answer(self.decode(ids[:first]).strip(), reasoning, tuple(self._calls(ids[first:])), thinking)

    def emitted(self, messages: Sequence[Message], tools: str, *, thinking: bool) -> tuple[int, ...]:
        *_, last = messages
        self.prompt(messages, tools, thinking=thinking)  # refuses what the template refuses
        thought: list[int] = []
        if thinking and self.thinks != "never":
            opening = [] if self.thinks == "prompt" else [THINK]
            thought = [*opening, *self.encode(last.reasoning or ""), THOUGHT]
        return (*thought, *self._body(last), END)

    def encode(self, text: str) -> list[int]:
        raw = text.encode(errors="replace")
        ids, at = [], 0
        while at < len(raw):
            for number, merged in enumerate(MERGED):
                if raw.startswith(merged, at):
                    ids.append(FIRST_MERGED + number)
                    at += len(merged)
                    break
            else:
                ids.append(BYTES + raw[at])
                at += 1
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(self._bytes(one) for one in ids).decode(errors="replace")

    def canonical(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        runs = [run.tolist() for run in np.split(ids, ends[:-1])]
        return np.array([self.encode(self.decode(run)) == run for run in runs], np.bool_)

    def _opening(self, thinking: bool) -> tuple[int, ...]:
        if self.thinks == "never":
            return ()
        if not thinking:
            return THINK, THOUGHT
        return (THINK,) if self.thinks == "prompt" else ()

    def _body(self, message: Message) -> list[int]:
        ids = self.encode(message.content)
        for call in message.tool_calls:
            body = orjson.dumps({"name": call.name, "arguments": orjson.loads(call.arguments)}).decode()
            ids += [CALL, *self.encode(body), CALLED]
        return ids

    def _calls(self, ids: list[int]) -> list[ToolCall]:
        calls: list[ToolCall] = []
        while CALL in ids:
            start = ids.index(CALL)
            stop = ids.index(CALLED, start) if CALLED in ids[start:] else len(ids)
            try:
                body = orjson.loads(self.decode(ids[start + 1 : stop]))
                calls.append(ToolCall(f"call_{len(calls)}", body["name"], orjson.dumps(body["arguments"]).decode()))
            except (orjson.JSONDecodeError, KeyError, TypeError):
                pass
            ids = ids[stop + 1 :]
        return calls

    def _bytes(self, one: int) -> bytes:
        if one in self.control_ids:
            return MARKS[one].encode()
        if one >= FIRST_MERGED:
            return dict(enumerate(MERGED, FIRST_MERGED)).get(one, b"")
        return bytes([one - BYTES]) if one >= BYTES else b""
