"""Qwen3 and Qwen3.6 by hand-made renderers: what they emit, read back."""

from __future__ import annotations

import pytest

from reflash.errors import RenderError
from reflash.render.base import Renderer
from reflash.types import Answer, Message, ToolCall
from tests.render.small import ids_of
from tests.render.trace import ASK, CALLS, TOOLS, TRACE


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("<think>\nEasy.\n</think>\n\n4<|im_end|>", Answer("4", "Easy.", (), "closed")),
        ("<think>\n\n</think>\n\n4<|im_end|>", Answer("4", "", (), "closed")),
        ("<think>\nEasy but long", Answer("", "Easy but long", (), "open")),
        ("<think>\nEasy<|im_end|>", Answer("", "Easy", (), "open")),
        ("4<|im_end|><|endoftext|>", Answer("4", None, (), "none")),
        ("Easy.\n</think>\n\n4", Answer("4", "Easy.", (), "closed")),
        ("", Answer("", None, (), "none")),
    ],
)
@pytest.mark.parametrize("name", ["qwen3", "qwen3_template"])
def test_output_is_read_where_the_model_opens_the_thought(
    name: str, written: str, answer: Answer, request: pytest.FixtureRequest
) -> None:
    renderer: Renderer = request.getfixturevalue(name)
    prompt = renderer.prompt([ASK], "", thinking=True)
    assert renderer.answer(prompt, ids_of(renderer, written)) == answer


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("Easy.\n</think>\n\n4<|im_end|>", Answer("4", "Easy.", (), "closed")),
        ("\n</think>\n\n4<|im_end|>", Answer("4", "", (), "closed")),
        ("Easy but long", Answer("", "Easy but long", (), "open")),
        ("", Answer("", "", (), "open")),
        ("<tool_call>\n", Answer("", "<tool_call>", (), "open")),
    ],
)
def test_output_is_read_where_the_prompt_opened_the_thought(qwen36: Renderer, written: str, answer: Answer) -> None:
    prompt = qwen36.prompt([ASK], "", thinking=True)
    assert qwen36.answer(prompt, ids_of(qwen36, written)) == answer


@pytest.mark.parametrize("name", ["qwen3", "qwen36", "qwen3_template"])
def test_output_behind_an_empty_thought_of_the_prompt_has_none(name: str, request: pytest.FixtureRequest) -> None:
    renderer: Renderer = request.getfixturevalue(name)
    prompt = renderer.prompt([ASK], "", thinking=False)
    assert renderer.answer(prompt, ids_of(renderer, "4<|im_end|>")) == Answer("4", None, (), "none")


@pytest.mark.parametrize("name", ["qwen3", "qwen3_template"])
def test_marks_that_a_model_spells_out_are_text(name: str, request: pytest.FixtureRequest) -> None:
    renderer: Renderer = request.getfixturevalue(name)
    spelt = renderer.encode("Use </think> and <tool_call>{}</tool_call>.")
    answer = renderer.answer(renderer.prompt([ASK], "", thinking=True), spelt)
    assert answer == Answer("Use </think> and <tool_call>{}</tool_call>.", None, (), "none")
    thinking = ids_of(renderer, "<think>\n") + renderer.encode("a </think> b") + ids_of(renderer, "\n</think>\n\n4")
    assert renderer.answer((), thinking) == Answer("4", "a </think> b", (), "closed")


@pytest.mark.parametrize("name", ["qwen3", "qwen36", "qwen3_template"])
@pytest.mark.parametrize("thinking", [True, False])
def test_a_calling_turn_comes_back_as_it_was(name: str, thinking: bool, request: pytest.FixtureRequest) -> None:
    renderer: Renderer = request.getfixturevalue(name)
    turn = Message("assistant", "Looking.", reasoning="Both." if thinking else None, tool_calls=CALLS)
    emitted = renderer.emitted([TRACE[0], turn], TOOLS, thinking=thinking)
    answer = renderer.answer(renderer.prompt(TRACE[:1], TOOLS, thinking=thinking), emitted)
    assert answer == Answer("Looking.", "Both." if thinking else None, CALLS, "closed" if thinking else "none")


def test_with_the_tools_at_hand_arguments_get_the_types_that_they_name(qwen36: Renderer) -> None:
    turn = Message("assistant", "", reasoning="x", tool_calls=(ToolCall("call_0", "weather", '{"zip": "10115"}'),))
    emitted = qwen36.emitted([TRACE[0], turn], TOOLS, thinking=True)
    prompt = qwen36.prompt(TRACE[:1], TOOLS, thinking=True)
    assert qwen36.answer(prompt, emitted, tools=TOOLS).tool_calls == turn.tool_calls  # type: ignore[call-arg]
    assert qwen36.answer(prompt, emitted).tool_calls[0].arguments == '{"zip": 10115}'


@pytest.mark.parametrize("name", ["qwen3", "qwen3_template"])
def test_a_call_that_cannot_be_read_stays_in_the_content(name: str, request: pytest.FixtureRequest) -> None:
    renderer: Renderer = request.getfixturevalue(name)
    good, bad = '<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>', "<tool_call>\nweather!\n</tool_call>"
    answer = renderer.answer((), ids_of(renderer, f"Hm.\n{good}\n{bad}<|im_end|>"))
    assert answer.tool_calls == (ToolCall("call_0", "weather", "{}"),)
    assert answer.content.startswith("Hm.\n")
    assert bad in answer.content


@pytest.mark.parametrize("name", ["qwen3", "qwen3_template"])
def test_arguments_written_as_a_string_are_kept_and_a_list_of_them_is_no_call(
    name: str, request: pytest.FixtureRequest
) -> None:
    renderer: Renderer = request.getfixturevalue(name)
    text = '<tool_call>\n{"name": "f", "arguments": "{\\"x\\": 1}"}\n</tool_call>'
    assert renderer.answer((), ids_of(renderer, text)).tool_calls == (ToolCall("call_0", "f", '{"x": 1}'),)
    listed = '<tool_call>\n{"name": "f", "arguments": [1]}\n</tool_call>'
    assert renderer.answer((), ids_of(renderer, listed)) == Answer(listed, None, (), "none")


@pytest.mark.parametrize("name", ["qwen3", "qwen36", "qwen3_template", "smollm"])
def test_odd_output_never_raises(name: str, request: pytest.FixtureRequest) -> None:
    renderer: Renderer = request.getfixturevalue(name)
    nested = renderer.encode("[" * 3000)
    marks = sorted(renderer.control_ids)
    prompt = renderer.prompt([ASK], "", thinking=True)
    for output in (
        [],
        marks,
        marks[::-1],
        [10**9, -1],
        [*marks, *nested, *marks],
        [*ids_of(renderer, "<tool_call>"), *nested],
    ):
        renderer.answer(prompt, output)
        renderer.answer((), [number for number in output if number not in renderer.stop_ids])


@pytest.mark.parametrize("name", ["qwen3", "qwen36", "qwen3_template", "smollm"])
def test_a_prompt_and_what_was_emitted_make_the_whole_rendering(name: str, request: pytest.FixtureRequest) -> None:
    renderer: Renderer = request.getfixturevalue(name)
    for thinking in (True, False):
        reasoning = "Two and two." if thinking and name != "smollm" else None
        turn = Message("assistant", "4, of course.", reasoning=reasoning)
        emitted = renderer.emitted([ASK, turn], "", thinking=thinking)
        assert emitted[-1] == renderer.stop_ids[0]
        assert sum(number in renderer.stop_ids for number in emitted) == 1
        answer = renderer.answer(renderer.prompt([ASK], "", thinking=thinking), emitted)
        assert (answer.content, answer.reasoning) == (turn.content, reasoning)


def test_what_was_emitted_cannot_be_told_where_the_prompt_is_written_otherwise(qwen36: Renderer) -> None:
    with pytest.raises(RenderError, match="take an engine that gives token ids"):  # "\n\n" of an empty thought
        qwen36.emitted([ASK, Message("assistant", "4")], "", thinking=True)


def test_the_target_model_s_own_ids_are_met(qwen36: Renderer, qwen3: Renderer) -> None:
    assert qwen36.stop_ids == (248046, 248044)
    assert qwen36.vocabulary == 248077
    assert qwen3.stop_ids == (151645, 151643)
    empty = (151667, 198, 198, 151668, 271, 3925, 13, 151645)
    assert qwen3.answer((), empty) == Answer("OK.", "", (), "closed")
    assert qwen3.decode(empty) == "<think>\n\n</think>\n\nOK.<|im_end|>"
