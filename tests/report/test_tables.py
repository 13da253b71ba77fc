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


def test_each_reason_stands_under_the_verdict_that_it_leads_to_and_notes_come_last() -> None:
    found = verdicts_table(report(MIXED))
    assert [(row["kind"], row["name"], row["share"]) for row in found] == [
        ("verdict", "good", "75.0%"),
        ("verdict", "flagged", "5.0%"),
        ("reason", "placeholder", "5.0%"),
        ("verdict", "rejected", "20.0%"),
        ("reason", "loop", "20.0%"),
        ("note", "retokenized", "0.4%"),
    ]
    assert all(row["meaning"] for row in found)


def test_the_markdown_puts_reasons_under_their_verdicts_too() -> None:
    text = report_markdown(report(MIXED))
    order = ["**good**", "**flagged**", "`placeholder`", "**rejected**", "`loop`", "`retokenized` (note)"]
    places = [text.index(f"| {name} |") for name in order]
    assert places == sorted(places)
    assert "A turn counts under each of its reasons" not in text


def test_a_reason_of_a_turn_rejected_for_another_counts_under_its_own_weight_and_that_is_said() -> None:
    both = summary(verdicts={"good": 9, "rejected": 1}, reasons={"loop": 1, "placeholder": 1})
    found = [(row["name"], row["turns"]) for row in verdicts_table(report(both))]
    assert found == [("good", "9"), ("flagged", "0"), ("placeholder", "1"), ("rejected", "1"), ("loop", "1")]
    assert "A turn counts under each of its reasons" in report_markdown(report(both))


def test_a_reason_that_is_no_longer_known_stands_under_rejected() -> None:
    old = summary(verdicts={"good": 9, "rejected": 1}, reasons={"of-old": 1})
    assert [row["name"] for row in verdicts_table(report(old))][-1] == "of-old"


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


def test_a_run_with_nothing_judged_shows_no_table_of_noughts() -> None:
    nothing = summary(turns=0, verdicts={}, output_tokens=0)
    text = report_markdown(report(nothing, shards=3, shards_done=0, planned_turns=30))
    assert "**Not finished: 0 of 3 shards." in text
    assert "No turn has its verdict yet." in text
    assert "0.0%" not in text
    assert not {"## Output", "## Examples"} & set(text.splitlines())
    assert "fit to train on" not in text


def test_a_run_whose_rows_are_all_bad_says_that_none_is_fit() -> None:
    text = report_markdown(report(summary(verdicts={"rejected": 10}, reasons={"loop": 10})))
    assert "**0 of 10 turns (0.0%) are fit to train on.**" in text
    assert "## Examples\n\nNo row is fit to train on." in text


def test_a_share_of_nearly_all_is_not_all() -> None:
    nearly = summary(turns=100_000, verdicts={"good": 99_999, "rejected": 1}, reasons={"loop": 1})
    assert [row["share"] for row in verdicts_table(report(nearly))] == [">99.9%", "0.0%", "<0.1%", "<0.1%"]
    assert shards_table([nearly])[0]["good share"] == ">99.9%"


def test_rejects_are_named_where_there_are_some() -> None:
    assert "`/runs/one/rejects`" in report_markdown(report(MIXED))
    clean = report(summary(), source_counts={"rows": 10, "accepted": 10})
    assert "| set aside, with reasons | nothing |" in report_markdown(clean)
