"""Any model, through its own chat template."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reflash.errors import RenderError
from reflash.render.control import Encoder, unmark
from reflash.render.messages import TOO_DEEP, Marked
from reflash.render.reading import Thought, cut_calls, thinking_marks, until_stop
from reflash.render.retokenize import Retokenizer
from reflash.render.sandbox import Template
from reflash.render.tokenizer import LoadedTokenizer
from reflash.types import Answer, Message

log = logging.getLogger(__name__)

_TRIMS = re.compile(r"content\s*\|\s*trim|content\.strip\(\)|render_content\([^)]*\)\s*\|\s*trim")
_PROBE = "Xylophone"


class TemplateRenderer:
    """Renders with a Jinja chat template and reads the common forms of thinking and tool calls."""

    def __init__(
        self, loaded: LoadedTokenizer, encoder: Encoder, source: str, *, preserve: bool, vocabulary: int = 0
    ) -> None:
        self.name = "template"
        self._encoder = encoder
        self._retokenizer = Retokenizer(encoder, loaded.name)
        self._marked = Marked(encoder.mark_all)
        variables = {"preserve_thinking": preserve, "clear_thinking": not preserve, **loaded.special}
        if "truncate_history_thinking" in source:
            variables["truncate_history_thinking"] = not preserve
        self._template = Template(source, loaded.name, variables)
        self._thinking = thinking_marks(self._encoder.control, source)
        self._trims = bool(_TRIMS.search(source))
        self.vocabulary = max(vocabulary, self._encoder.vocabulary)
        self.control_ids = self._encoder.control_ids
        self.stop_ids = self._find_stop_ids(loaded)
        self.digest = hashlib.blake2b(
            f"template {loaded.digest} {preserve} {source}".encode(), digest_size=16
        ).hexdigest()
        if "strftime_now" in source:
            log.warning("the chat template of %s writes today's date into prompts: they differ by day", loaded.name)

    def prompt(self, messages: Sequence[Message], tools: str, *, thinking: bool) -> tuple[int, ...]:
        """Ids of the prompt that asks for the next assistant turn. Raises RenderError where the template refuses."""
        return tuple(self._encoder.encode(self._text(messages, tools, prompt=True, thinking=thinking)))

    def answer(self, prompt: Sequence[int], output: Sequence[int], tools: str = "") -> Answer:  # noqa: ARG002
        """Read emitted ids back as a message; what cannot be read as a call stays in the content.

        Calls in JSON carry their types, so `tools` is not looked at.
        """
        text = self._encoder.decode_marked(until_stop(output, self.stop_ids))
        thought = Thought("none", None, text)
        if self._thinking is not None:
            opened = self._thinking.prompt_state(self._encoder, prompt) == "opened"
            thought = self._thinking.cut(text, opened=opened)
        content, calls = cut_calls(thought.rest)
        if thought.state == "closed":
            content = content.lstrip("\n")
        content = content.strip() if self._trims else content
        reasoning = None if thought.reasoning is None else unmark(thought.reasoning)
        return Answer(unmark(content), reasoning, calls, thought.state)

    def emitted(self, messages: Sequence[Message], tools: str, *, thinking: bool) -> tuple[int, ...]:
        """Ids that the model would have emitted for the last message. Raises RenderError for an unstable template."""
        prompt = self.prompt(messages[:-1], tools, thinking=thinking)
        whole = self._encoder.encode(self._text(messages, tools, prompt=False, thinking=thinking))
        return suffix(prompt, whole, self.stop_ids)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text."""
        return self._encoder.encode_plain(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, control tokens written out."""
        return self._encoder.decode(ids)

    def canonical(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each run of plain ids, which ends before `ids[ends[i]]`, is what its own text encodes to."""
        return self._retokenizer.canonical(ids, ends)

    def _text(self, messages: Sequence[Message], tools: str, *, prompt: bool, thinking: bool) -> str:
        try:
            rows, definitions = self._marked.messages(messages), self._marked.tools(tools)
        except RecursionError:
            raise RenderError(TOO_DEEP) from None
        return self._template.render(rows, definitions, prompt=prompt, thinking=thinking)

    def _find_stop_ids(self, loaded: LoadedTokenizer) -> tuple[int, ...]:
        """What the template writes behind an answer, then what the tokenizer's files list."""
        ids = [*loaded.stop_ids, self._encoder.control.get("<|endoftext|>")]
        try:
            text = self._text([Message("user", "Hi"), Message("assistant", _PROBE)], "", prompt=False, thinking=True)
        except RenderError:
            text = ""
        behind = text.rpartition(_PROBE)[2].lstrip()
        written = [token for token in self._encoder.control if behind.startswith(token)]
        if written:
            ids.insert(0, self._encoder.control[max(written, key=len)])
        return tuple(dict.fromkeys(number for number in ids if number is not None))


def suffix(prompt: Sequence[int], whole: Sequence[int], stop_ids: Sequence[int]) -> tuple[int, ...]:
    """What follows the prompt, to the id that ends the turn. Raises RenderError where the prompt is no prefix."""
    if tuple(whole[: len(prompt)]) != tuple(prompt):
        raise RenderError(
            "the template writes the prompt otherwise once an answer follows it: the answer's ids cannot be told; "
            "take an engine that gives token ids"
        )
    emitted = list(whole[len(prompt) :])
    ends = [place for place, number in enumerate(emitted) if number in stop_ids]
    if ends:
        return tuple(emitted[: ends[-1] + 1])
    return (*emitted, stop_ids[0]) if stop_ids else tuple(emitted)
