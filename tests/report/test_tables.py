from __future__ import annotations

from typing import Any

import pytest

from reflash.report.tables import plan_table, shards_table, verdicts_table
from reflash.report.text import report_markdown
from reflash.types import Shard
from tests.report.making import report, summary

MIXED = summary(
    turns=2000,
    verdicts={"good": 1500, "flagged": 100, "rejected": 400},
    reasons={"placeholder": 100, "loop": 400},
    notes={"retokenized": 8},
)


def test_the_plan_counts_source_rows_and_work() -> None:
    found = plan_table({"rows": 1200, "rejected": 3}, [Shard("00000", 1197, 2000)])
    assert {row["what"]: row["count"] for row in found} == {
        "source rows": "1,200",
        "source rows: rejected": "3",
        "conversations planned": "1,197",
        "turns to generate": "2,000",
        "shards": "1",
    }


def test_the_worst_shard_stands_first_and_names_what_is_wrong() -> None:
    bad = summary("00002", verdicts={"good": 4, "rejected": 6}, reasons={"empty": 2, "loop": 4})
    found = shards_table([summary("00001"), bad, summary("00000")])
    assert [row["shard"] for row in found] == ["00002", "00000", "00001"]
    assert [row["good share"] for row in found] == ["40.0%", "100.0%", "100.0%"]
    assert [row["mostly"] for row in found] == ["loop", "", ""]
    assert found[0]["per turn"] == "150"


def test_verdicts_come_before_reasons_and_reasons_before_notes() -> None:
    found = verdicts_table(report(MIXED))
    assert [(row["kind"], row["name"], row["share"]) for row in found] == [
        ("verdict", "good", "75.0%"),
        ("verdict", "flagged", "5.0%"),
        ("verdict", "rejected", "20.0%"),
        ("reason", "loop", "20.0%"),
        ("reason", "placeholder", "5.0%"),
        ("note", "retokenized", "0.4%"),
    ]
    assert all(row["meaning"] for row in found)


def test_cells_are_plain_text() -> None:
    tables: list[list[dict[str, Any]]] = [
        plan_table({"rows": 1}, []),
        shards_table([MIXED]),
        verdicts_table(report(MIXED)),
    ]
    assert {type(cell) for table in tables for row in table for cell in row.values()} == {str}


def test_the_report_begins_with_its_verdict_and_what_to_look_at() -> None:
    text = report_markdown(report(MIXED, alarms=("loop",)))
    order = ["# rows.jsonl answered by model", "**1,500 of 2,000 turns", "Look at this first", "## Verdicts", "## Rows"]
    places = [text.replace("\\", "").index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize("bins", [{}, {7: 100}, {7: 100, 8: 5000}, {7: 100, 8: 5000, 9: 5000, 10: 30}])
def test_a_run_of_any_length_has_a_report(bins: dict[int, int]) -> None:
    text = report_markdown(report(summary(tokens_by_time=bins, lengths={4: 10}, output_tokens=sum(bins.values()))))
    assert text.count("data:image/png") == (2 if bins else 0)


def test_intervals_that_were_only_begun_do_not_count_into_the_rate() -> None:
    whole = summary(tokens_by_time={1: 10, 2: 5000, 3: 5000, 4: 10}, lengths={4: 10})
    other = summary(tokens_by_time={1: 70, 2: 5000, 3: 5000, 4: 99}, lengths={4: 10})
    assert report_markdown(report(whole)) == report_markdown(report(other))
