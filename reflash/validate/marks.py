"""What a model's chat format writes, learned by rendering a few samples: which control tokens an answer may hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from reflash.errors import RenderError
from reflash.render.base import Renderer
from reflash.types import Message, ToolCall

_SYSTEM = Message("system", "Be brief.")
_USER = Message("user", "Hello.")
_PLAIN = Message("assistant", "Hi.", reasoning="A greeting.")
_RESULT = Message("tool", "1", tool_call_id="call_0", name="look")
_TOOLS = (
    '[{"type":"function","function":{"name":"look","description":"Look.",'
    '"parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}]'
)
# Names that every known format gives to these marks; a format that refuses the samples still has them.
_THINKING_NAME = re.compile("think", re.IGNORECASE)
_CALL_NAME = re.compile(r"tool.?call", re.IGNORECASE)
_CLOSING_NAME = re.compile(r"^\W*/|end", re.IGNORECASE)
_PARTNERS = (
    ("/", ""),
    ("end", "start"),
    ("END", "START"),
    ("end", "begin"),
)  # makes a closing name an opening one
_SHORTEST_MARK = 3  # characters; a shorter control token says nothing when it turns up in prose


@dataclass(frozen=True, slots=True)
class Marks:
    """The control tokens of one chat format, by what they are for."""

    control: frozenset[int]  # all of them, stop ids included
    stops: frozenset[int]
    ends: frozenset[int]  # those of them that the template itself writes
    thinking: frozenset[int]
    opens: frozenset[int]  # those of them that open a thought
    closes: frozenset[int]  # and that close it
    legal: frozenset[int]  # an answer may hold these
    spelled: re.Pattern[str]  # the marks that the template writes, as text
    any_mark: re.Pattern[str]  # every control token, as text
    thinks: bool  # the template can turn thinking on and off
    first_call: Mapping[int, int]  # marks that the first tool call of an answer adds
    more_calls: Mapping[int, int]  # marks that each further call adds
    closers: frozenset[int]  # those of them that close something
    calls_last: bool  # nothing follows the calls of an answer but its end

    def calls_marked(self, calls: int) -> dict[int, int]:
        """How often each tool mark stands in an answer that makes so many calls."""
        if not calls:
            return dict.fromkeys(self.first_call, 0)
        return {i: n + (calls - 1) * self.more_calls.get(i, 0) for i, n in self.first_call.items()}


def learn_marks(renderer: Renderer) -> Marks:
    """Learn a format's marks from some twenty small renders; samples that its template refuses are left out."""
    stops = frozenset(renderer.stop_ids)
    control = renderer.control_ids | stops
    texts = {i: renderer.decode([i]) for i in control}
    thinking = frozenset(i for i, text in texts.items() if _THINKING_NAME.search(text))
    calls = frozenset(i for i, text in texts.items() if _CALL_NAME.search(text))
    answers = _marks_in(control, _sample_answers(renderer))
    prompts = _marks_in(control, _sample_prompts(renderer))
    none, one, two, wordy = (
        _calls_counted(renderer, control - stops - thinking, calls=n, arguments=k)
        for n, k in ((0, 1), (1, 1), (2, 1), (1, 3))
    )
    first = {i: n for i, n in (one - none).items() if wordy[i] == one[i]}  # without the marks of arguments
    closers = frozenset(i for i in first if _CLOSING_NAME.search(texts[i]))
    pairs = _pairs({texts[i]: i for i in thinking})
    return Marks(
        control=control,
        stops=stops,
        ends=stops & (answers | prompts),
        thinking=thinking,
        opens=frozenset(pairs.values()),
        closes=frozenset(pairs),
        legal=answers | thinking | calls | stops,
        spelled=_pattern(texts[i] for i in answers | prompts | thinking | calls | stops),
        any_mark=_pattern(texts.values()),
        thinks=_thinks(renderer),
        first_call=first,
        more_calls=dict(two - one),
        closers=closers,
        calls_last=_last_before(renderer, stops) in closers,
    )


def _calling(calls: int, arguments: int = 1) -> Message:
    given = ", ".join(f'"at{i or ""}": "here"' for i in range(arguments))
    made = tuple(ToolCall(f"call_{i}", "look", f"{{{given}}}") for i in range(calls))
    return Message("assistant", "" if calls else "Hi.", reasoning="Look.", tool_calls=made)


def _sample_answers(renderer: Renderer) -> Iterator[Sequence[int]]:
    for thinking in (True, False):
        yield _try(partial(renderer.emitted, [_USER, _PLAIN], "", thinking=thinking))
        yield _try(partial(renderer.emitted, [_USER, _calling(2)], _TOOLS, thinking=thinking))


def _sample_prompts(renderer: Renderer) -> Iterator[Sequence[int]]:
    samples = (
        ([_USER], ""),
        ([_SYSTEM, _USER], ""),
        ([_USER, _PLAIN, _USER], ""),
        ([_USER, _calling(1), _RESULT], _TOOLS),
    )
    for messages, tools in samples:
        for thinking in (True, False):
            yield _try(partial(renderer.prompt, messages, tools, thinking=thinking))


def _calls_counted(renderer: Renderer, marks: frozenset[int], *, calls: int, arguments: int) -> Counter[int]:
    """How often each mark stands in a rendered answer that makes so many calls."""
    ids = _try(partial(renderer.emitted, [_USER, _calling(calls, arguments)], _TOOLS, thinking=True))
    return Counter(i for i in ids if i in marks)


def _last_before(renderer: Renderer, stops: frozenset[int]) -> int | None:
    """The last id of a calling answer before its end, spaces left out."""
    ids = _try(partial(renderer.emitted, [_USER, _calling(1)], _TOOLS, thinking=True))
    return next((i for i in reversed(ids) if i not in stops and renderer.decode([i]).strip()), None)


def _pairs(thinking: Mapping[str, int]) -> dict[int, int]:
    """Thinking marks that close a thought, each with the one that opens it: `</think>` with `<think>`."""
    return {
        closing: thinking[opening]
        for text, closing in thinking.items()
        for old, new in _PARTNERS
        if old in text and (opening := text.replace(old, new, 1)) in thinking
    }


def _thinks(renderer: Renderer) -> bool:
    on, off = (_try(partial(renderer.prompt, [_USER], "", thinking=t)) for t in (True, False))
    return bool(on) and bool(off) and tuple(on) != tuple(off)


def _try(render: Callable[[], Sequence[int]]) -> Sequence[int]:
    """The rendered ids, or none where the template refuses the sample (no tools, no system turn)."""
    try:
        return render()
    except RenderError:
        return ()


def _marks_in(control: frozenset[int], rendered: Iterable[Sequence[int]]) -> frozenset[int]:
    return frozenset().union(*(control.intersection(ids) for ids in rendered))


def _pattern(texts: Iterable[str]) -> re.Pattern[str]:
    marks = sorted({t.strip() for t in texts if len(t.strip()) >= _SHORTEST_MARK}, key=lambda t: (-len(t), t))
    return re.compile("|".join(map(re.escape, marks)) if marks else r"(?!)")
