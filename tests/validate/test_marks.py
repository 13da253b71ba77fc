from __future__ import annotations

from reflash.types import Message
from reflash.validate.marks import learn_marks
from tests.fake_renderer import CALL, CALLED, END, FILE, STOP, THINK, THOUGHT, USER, FakeRenderer


def test_an_answer_may_hold_thinking_tool_and_end_marks_but_no_role_mark() -> None:
    marks = learn_marks(FakeRenderer(thinks="prompt"))
    assert marks.legal == {END, STOP, THINK, THOUGHT, CALL, CALLED}
    assert {USER, FILE} <= marks.control


def test_a_template_that_refuses_the_samples_is_learned_as_far_as_it_goes() -> None:
    marks = learn_marks(FakeRenderer(calls=False, refuses="Be brief."))
    assert marks.legal == {END, STOP}
    assert marks.calls_marked(2) == {}
    assert marks.spelled.search("a <|user|> b")


def test_tool_marks_are_counted_per_call() -> None:
    marks = learn_marks(FakeRenderer())
    assert marks.calls_marked(0) == {CALL: 0, CALLED: 0}
    assert marks.calls_marked(3) == {CALL: 3, CALLED: 3}


def test_marks_of_arguments_are_legal_and_not_counted() -> None:
    class MarkedArguments(FakeRenderer):
        def _body(self, message: Message) -> list[int]:
            ids = FakeRenderer._body(self, message)
            return [FILE] * sum(call.arguments.count(":") for call in message.tool_calls) + ids

    marks = learn_marks(MarkedArguments())
    assert FILE in marks.legal
    assert marks.calls_marked(2) == {CALL: 2, CALLED: 2}


def test_only_a_template_that_turns_thinking_on_and_off_thinks() -> None:
    assert learn_marks(FakeRenderer(thinks="model")).thinks
    assert learn_marks(FakeRenderer(thinks="prompt")).thinks
    assert not learn_marks(FakeRenderer()).thinks


def test_a_format_without_marks_matches_no_text() -> None:
    class Bare(FakeRenderer):
        control_ids = frozenset()  # type: ignore[assignment]
        stop_ids = ()  # type: ignore[assignment]

    assert not learn_marks(Bare()).spelled.search("<|user|> or nothing at all")
