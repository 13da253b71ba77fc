"""Model families, through the hand-made renderers of the package `renderers`.

They follow each family's own template but for one thing, which is kept: with thinking off, earlier answers keep the
empty thought that their prompt wrote, so that a conversation has the same ids whenever it is rendered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflash.errors import RenderError
from reflash.render.control import Encoder, unmark
from reflash.render.messages import TOO_DEEP, Marked, parse_tools
from reflash.render.reading import Thought, arguments_text, thinking_marks, until_stop
from reflash.render.retokenize import Retokenizer
from reflash.render.template import suffix
from reflash.render.tokenizer import LoadedTokenizer
from reflash.types import Answer, Message, ToolCall

# What a family's renderer may raise over messages it refuses or output it cannot read.
REFUSALS = (ValueError, TypeError, LookupError, AttributeError, AssertionError, RuntimeError)
# Their renderer brings an encoder of its own, which reads no control token in text: a mark would be text to it.
OWN_ENCODER = frozenset({"gpt-oss"})
BROKEN = ("unclosed_block", "malformed_structure")
# Fields of the package's configs that say what becomes of thinking, by whether they mean "keep" or "drop".
KEEP = ("preserve_thinking", "preserved_thinking")
DROP = ("clear_thinking", "truncate_history_thinking", "auto_drop_analysis", "drop_thinking")

_PATTERNS = (
    (re.compile(r"qwen3[._p]8|qwen3-8(?![\d.]*b)"), "qwen3.8"),
    (re.compile(r"qwen3[._p]6|qwen3-6(?![\d.]*b)"), "qwen3.6"),
    (re.compile(r"qwen3[._p]5|qwen3-5(?![\d.]*b)"), "qwen3.5"),
    (re.compile(r"qwen3-\d[\d.]*b|qwen3$"), "qwen3"),
)


def family_of(model: str) -> str | None:
    """The hand-made renderer that a model's name asks for, or None: by its exact name first, then by its family's."""
    from renderers.base import MODEL_RENDERER_MAP

    exact = MODEL_RENDERER_MAP.get(model)
    if exact is not None:
        return str(exact)
    short = model.rstrip("/").rpartition("/")[2].lower()
    return next((family for pattern, family in _PATTERNS if pattern.search(short)), None)


class _Tokenizer:
    """What the package asks of a tokenizer, on ours. No offsets: they would cost a second encoding."""

    unk_token_id = None

    def __init__(self, encoder: Encoder, name: str, eos_token_id: int | None) -> None:
        self.name_or_path = name
        self.eos_token_id = eos_token_id
        self._encoder = encoder

    def encode(self, text: str, **_: Any) -> list[int]:
        return self._encoder.encode_piece(text)

    def decode(self, token_ids: Any, **_: Any) -> str:
        return self._encoder.decode([token_ids] if isinstance(token_ids, int) else token_ids)

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        if isinstance(tokens, str):
            return self._encoder.full.token_to_id(tokens)
        return [self._encoder.full.token_to_id(token) for token in tokens]


class FamilyRenderer:
    """One family's renderer, with thinking on and off. Raises RenderError where the tokenizer is not the family's."""

    def __init__(
        self, loaded: LoadedTokenizer, encoder: Encoder, family: str, model: str, *, preserve: bool, vocabulary: int = 0
    ) -> None:
        self.name = family
        self._encoder = encoder
        self._retokenizer = Retokenizer(encoder, loaded.name)
        self._marked = Marked(_as_it_is if family in OWN_ENCODER else encoder.mark_all)
        tokenizer = _Tokenizer(self._encoder, model, loaded.stop_ids[0] if loaded.stop_ids else None)
        self._inner = {on: _create(tokenizer, family, loaded.name, on, preserve) for on in (True, False)}
        self._thinking = thinking_marks(self._encoder.control, "")
        self.vocabulary = max(vocabulary, self._encoder.vocabulary)
        self.control_ids = self._encoder.control_ids
        self.stop_ids = tuple(dict.fromkeys([*self._inner[True].get_stop_token_ids(), *loaded.stop_ids]))
        source = f"{family} {version('renderers')} {loaded.digest} {preserve}"
        self.digest = hashlib.blake2b(source.encode(), digest_size=16).hexdigest()

    def prompt(self, messages: Sequence[Message], tools: str, *, thinking: bool) -> tuple[int, ...]:
        """Ids of the prompt that asks for the next assistant turn. Raises RenderError where the family refuses."""
        return tuple(self._render(messages, tools, thinking, prompt=True))

    def answer(self, prompt: Sequence[int], output: Sequence[int], tools: str = "") -> Answer:
        """Read emitted ids back as a message.

        With `tools`, arguments get the types that the definitions name. What cannot be read as a call stays in the
        content.
        """
        ids = until_stop(output, self.stop_ids)
        marks = self._thinking
        if marks is None or marks.closes not in self._encoder.control:
            return self._parse(ids, prompt, tools, None)
        thought = marks.cut(
            self._encoder.decode_marked(ids), opened=marks.prompt_state(self._encoder, prompt) == "opened"
        )
        if thought.state == "open":
            return Answer("", unmark(thought.reasoning or ""), (), "open")
        if thought.state == "closed":
            ids = ids[ids.index(self._encoder.control[marks.closes]) + 1 :]
        return self._parse(ids, None, tools, thought)

    def emitted(self, messages: Sequence[Message], tools: str, *, thinking: bool) -> tuple[int, ...]:
        """Ids that the model would have emitted for the last message. Raises RenderError where they cannot be told."""
        prompt = self._render(messages[:-1], tools, thinking, prompt=True)
        return suffix(prompt, self._render(messages, tools, thinking, prompt=False), self.stop_ids)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text."""
        return self._encoder.encode_plain(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, control tokens written out."""
        return self._encoder.decode(ids)

    def canonical(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each run of plain ids, which ends before `ids[ends[i]]`, is what its own text encodes to."""
        return self._retokenizer.canonical(ids, ends)

    def _render(self, messages: Sequence[Message], tools: str, thinking: bool, *, prompt: bool) -> list[int]:
        try:
            rows, definitions = self._marked.messages(messages), self._marked.tools(tools)
            ids: list[int] = self._inner[thinking].render_ids(rows, tools=definitions, add_generation_prompt=prompt)
        except RecursionError:
            raise RenderError(TOO_DEEP) from None
        except REFUSALS as error:
            raise RenderError(f"the renderer {self.name} refuses this conversation: {error}") from error
        return ids

    def _parse(self, ids: list[int], prompt: Sequence[int] | None, tools: str, thought: Thought | None) -> Answer:
        """Content and calls of an output, or of what follows its thought."""
        try:
            definitions = parse_tools(tools)
        except RenderError:
            definitions = None
        try:
            # Behind a thought there is no more to find, and the inner renderer with thinking off looks for none.
            read = self._inner[thought is None].parse_response(
                ids, tools=definitions, prompt_ids=list(prompt) if prompt else None
            )
        except REFUSALS:
            text = self._encoder.decode(ids).strip()
            return Answer(text, _reasoning(thought), (), thought.state if thought else "none")
        calls, left = self._calls(ids, read.tool_calls)
        content = "\n".join(part for part in (read.content, *left) if part).strip()
        if thought is not None:
            return Answer(content, _reasoning(thought), calls, thought.state)
        if read.reasoning_complete is False:
            return Answer("", read.reasoning_content, (), "open")
        return Answer(content, read.reasoning_content, calls, "none" if read.reasoning_content is None else "closed")

    def _calls(self, ids: Sequence[int], parsed: Sequence[Any]) -> tuple[tuple[ToolCall, ...], list[str]]:
        """Calls that can be made, and the text of those that cannot."""
        calls: list[ToolCall] = []
        left: list[str] = []
        for call in parsed:
            # "invalid_json" with all its arguments is a value kept as text, since no definition gave its type.
            arguments = arguments_text(call.arguments)
            if call.name and arguments is not None and call.status not in BROKEN:
                calls.append(ToolCall(call.id or f"call_{len(calls)}", call.name, arguments))
            else:
                start, end = call.token_span or (0, 0)
                left.append(self._encoder.decode(ids[start:end]) or call.raw)
        return tuple(calls), left


def _as_it_is(value: Any) -> Any:
    return value


def _reasoning(thought: Thought | None) -> str | None:
    return None if thought is None or thought.reasoning is None else unmark(thought.reasoning)


def _create(tokenizer: _Tokenizer, family: str, name: str, thinking: bool, preserve: bool) -> Any:
    from renderers import config_from_name, create_renderer

    config = type(config_from_name(family))
    fields = config.model_fields
    chosen: dict[str, bool] = {key: thinking for key in ("enable_thinking", "thinking") if key in fields}
    chosen |= {key: preserve for key in KEEP if key in fields} | {key: not preserve for key in DROP if key in fields}
    try:
        return create_renderer(tokenizer, config(**chosen))
    except REFUSALS as error:
        raise RenderError(
            f"{name}: the renderer {family} cannot work with this tokenizer ({error}); set model.renderer to template, "
            "or model.tokenizer to the model's own"
        ) from error
