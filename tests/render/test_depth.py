"""Content nested deeper than Python follows: one conversation is refused, and the run goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from reflash.errors import RenderError
from reflash.plan.prepare import Unfit, prepare
from reflash.render.base import Renderer
from reflash.render.control import MARK, Encoder
from reflash.render.history import fitting_calls, histories
from reflash.render.reading import cut_calls
from reflash.types import Conversation, Message, Origin, Planned, ToolCall, Turn
from tests.making import config
from tests.render.small import template_renderer
from tests.render.test_control import small, token
from tests.validate.making import CONFIG, judge_conversation

CHAT = (
    "{% for m in messages %}<s>{{ m.role }}:{{ m.content }}"
    "{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}<e>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)
RECURSES = "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(messages) }}"
TOOLS = '[{"type": "function", "function": {"name": "f", "parameters": HERE}}]'


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def calling(levels: int, name: str = "c") -> Conversation:
    call = ToolCall("1", "f", deep(levels))
    asked = (Message("user", "Hi"), Message("assistant", "", tool_calls=(call,)), Message("tool", "x", None, (), "1"))
    return Conversation(name, (*asked, Message("assistant", "old")))


@pytest.fixture(params=["template", "qwen3"])
def renderer(request: pytest.FixtureRequest) -> Renderer:
    if request.param == "qwen3":
        made: Renderer = request.getfixturevalue("qwen3")
        return made
    return template_renderer(CHAT, "<s>", "<e>", eos="<e>")


@pytest.mark.parametrize("levels", [300, 600, 900, 5000])
def test_deep_arguments_are_rendered_or_refused(renderer: Renderer, levels: int) -> None:
    conversation = calling(levels)
    for render in (renderer.prompt, renderer.emitted):
        try:
            assert render(conversation.messages, "", thinking=False)
        except RenderError as error:
            assert len(str(error)) < 300  # noqa: PT017  either is right


@pytest.mark.parametrize("levels", [600, 900, 5000])
def test_deep_tools_are_rendered_or_refused(renderer: Renderer, levels: int) -> None:
    with pytest.raises(RenderError, match="deep"):
        renderer.prompt([Message("user", "Hi")], TOOLS.replace("HERE", deep(levels)), thinking=False)


def test_one_deep_conversation_among_others_is_unfit_and_the_others_are_planned(
    renderer: Renderer, tmp_path: Path
) -> None:
    conversations = [calling(levels, f"c{levels}") for levels in (1, 600, 2)]
    rows = [(Origin("f", n), c) for n, c in enumerate(conversations)]
    prepared = prepare(rows, config(tmp_path), renderer)
    assert [type(one) for one in prepared] == [Planned, Unfit, Planned]
    [unfit] = [one for one in prepared if isinstance(one, Unfit)]
    assert unfit.id == "c600"
    assert "deep" in unfit.reason


def test_a_deep_conversation_is_judged_like_any_other(renderer: Renderer) -> None:
    conversation = calling(600)
    turn = Turn("c", 0, 3, (1, 2), (3, renderer.stop_ids[0]), "stop")
    [judgement] = judge_conversation(conversation, [turn], renderer, CONFIG, 4096)
    assert "prompt-drift" in judgement.reasons


def test_a_template_that_calls_itself_is_a_render_error() -> None:
    renderer = template_renderer(RECURSES, "<e>", eos="<e>")
    with pytest.raises(RenderError, match="too deep"):
        renderer.prompt([Message("user", "Hi")], "", thinking=False)
    with pytest.raises(RenderError, match="too deep"):
        renderer.emitted([Message("user", "Hi"), Message("assistant", "x")], "", thinking=False)


@pytest.mark.parametrize("levels", [100, 300, 600, 900, 980, 5000])
def test_output_of_any_depth_is_read_back(renderer: Renderer, levels: int) -> None:
    written = f'<tool_call>\n{{"name": "f", "arguments": {deep(levels)}}}\n</tool_call>'
    assert renderer.answer((), renderer.encode(written)).thinking == "none"
    content, calls = cut_calls(written)
    assert (content == "") == bool(calls)
    marks = {renderer.decode([i]): i for i in renderer.control_ids}
    if "<tool_call>" in marks:
        inside = renderer.encode(written.removeprefix("<tool_call>").removesuffix("</tool_call>"))
        assert renderer.answer((), [marks["<tool_call>"], *inside, marks["</tool_call>"]]).thinking == "none"


@pytest.mark.parametrize("levels", [200, 300, 600, 1000, 5000])
def test_calls_of_any_depth_can_be_compared_with_the_recorded_ones(levels: int) -> None:
    made = (ToolCall("call_0", "f", deep(levels)),)
    assert fitting_calls((ToolCall("7", "f", deep(levels)),), made) == (ToolCall("7", "f", deep(levels)),)
    assert fitting_calls((ToolCall("7", "f", deep(levels).replace("1", "2")),), made) is None


def test_a_deep_call_in_a_turn_that_is_not_the_last_leaves_the_recorded_one_in_place() -> None:
    conversation = calling(1)
    turns = [
        Turn("c", 0, 1, (1,), (2,), "stop", tool_calls=(ToolCall("call_0", "f", deep(300)),)),
        Turn("c", 1, 3, (1,), (2,), "stop", content="new"),
    ]
    first, second = histories(conversation, turns)
    assert first == conversation.messages[:1]
    assert second == conversation.messages[:3]


def test_half_a_character_in_arguments_is_compared_too() -> None:
    odd = (ToolCall("call_0", "f", '{"a": "\ud83d"}'),)
    assert fitting_calls(odd, odd) == odd


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" + " " * 200_000,
        "<tool_call>" + " " * 200_000 + "x",
        "<tool_call>x" + " " * 200_000 + "y",
        "<tool_call>" + "\n" * 200_000 + "</tool_call>",
        "<tool_call></tool_call>" * 40_000,
        "<tool_call>" * 40_000,
        "</tool_call>" * 40_000,
    ],
    ids=lambda text: f"{text[:14]!r} and {len(text)}",
)
def test_calls_are_looked_for_in_the_time_that_reading_takes(text: str) -> None:
    before = time.perf_counter()
    assert cut_calls(text) == (text, ())
    assert time.perf_counter() - before < 1


def test_spaces_are_stripped_beside_a_control_token_in_the_time_that_reading_takes() -> None:
    encoder = Encoder(small(token("<end>", lstrip=True)))
    before = time.perf_counter()
    encoder.encode(" " * 50_000 + MARK + MARK)
    assert time.perf_counter() - before < 2
