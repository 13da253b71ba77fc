"""What is counted as being answered when a measurement ends."""

from __future__ import annotations

from reflash.benchmark.pilot import _seen
from reflash.benchmark.press import Pressed
from reflash.benchmark.tap import Call
from tests.making import config, turn

CALLS = [
    Call("whole", 0, 0.0, 4.0, 40),
    Call("pieces", 0, 0.0, 5.0, 50),  # it goes on in a second piece
    Call("pieces", 0, 5.0),
    Call("twice", 0, 0.0),  # sent again, and answered the second time
    Call("twice", 0, 3.0, 6.0, 30),
    Call("late", 0, 2.0),  # sent again, and not answered yet
    Call("late", 0, 7.0),
    Call("drawn", 0, 0.0, 3.0, 30),  # thrown away for another draw
    Call("drawn", 0, 3.0, 5.0, 20),
]


def test_a_request_under_way_counts_once_and_one_answered_by_its_second_sending_not_at_all() -> None:
    found = Pressed(0.0, CALLS, ended=10.0).under_way
    assert [(call.conversation, call.sent) for call in found] == [("pieces", 5.0), ("late", 2.0)]


def test_rows_under_way_hold_what_they_made_and_rows_that_were_drawn_again_what_they_cost() -> None:
    """Requests made 10 tokens a second: 50 and 5 s of the second piece, 8 s of the one that is late."""
    turns = [turn("whole"), turn("twice"), turn("drawn", completion_tokens=20)]
    strata = dict.fromkeys(("whole", "pieces", "twice", "late", "drawn"), "all")
    rows = {row.tokens: row for row in _seen(config("run"), turns, Pressed(0.0, CALLS, ended=10.0), strata)}
    assert rows[100].under_way
    assert rows[80].under_way
    assert rows[50].turns == (20,)  # of the row that was drawn twice: 30 tokens were for nothing
