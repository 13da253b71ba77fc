"""The report's own arithmetic."""

from __future__ import annotations

from reflash.report.text import without_pauses


def test_a_short_lull_is_drawn_and_a_long_pause_is_cut() -> None:
    assert without_pauses({100: 10, 103: 20}) == [1.0, 0.0, 0.0, 2.0]
    assert without_pauses({100: 10, 100_000_000: 20}) == [1.0, 0.0, 2.0]  # a resume years later, or a clock that jumped
