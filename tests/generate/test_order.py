"""Long conversations early, and no other order changed."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from reflash.generate.order import ENOUGH, Lengths
from reflash.types import Origin, Planned
from tests.making import planned, rows, talk, turn


def of(file: str, name: str, *questions: str) -> Planned:
    return replace(planned(talk(name, *(questions or ("what?",)))), origin=Origin(file, 1))


def test_more_turns_go_first_before_anything_is_known() -> None:
    todo = [of("a", "one"), of("a", "four", "1", "2", "3", "4"), of("a", "two", "1", "2")]
    assert [p.conversation.id for p in Lengths().long_first(todo)] == ["four", "two", "one"]


def test_rows_that_look_alike_keep_their_order() -> None:
    todo = rows(100)
    assert list(Lengths().long_first(todo)) == todo


def test_what_was_long_before_goes_first() -> None:
    lengths = Lengths()
    for n in range(ENOUGH):
        lengths.seen(of("short.jsonl", f"s{n}"), [turn(f"s{n}", output_ids=(1,) * 20)])
        lengths.seen(of("long.jsonl", f"l{n}"), [turn(f"l{n}", output_ids=(1,) * 2000)])
    todo = deque([of("short.jsonl", "a"), of("long.jsonl", "b"), of("short.jsonl", "c"), of("new.jsonl", "d")])
    assert [p.conversation.id for p in lengths.long_first(todo)] == ["b", "d", "a", "c"]
    assert not todo


def test_an_answer_that_never_came_teaches_nothing() -> None:
    lengths = Lengths()
    for n in range(ENOUGH):
        lengths.seen(of("a", f"{n}"), [turn(f"{n}", output_ids=(), finish_reason="error")])
    assert lengths.guess(of("a", "next")) == 1.0
