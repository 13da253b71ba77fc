"""The page of a run that goes on, and what is said of one that was stopped."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from reflash.generate.progress import Progress
from reflash.report.board import Board
from reflash.report.live import View, live_markdown, view_of
from reflash.report.text import report_markdown
from reflash.report.words import without_secrets
from reflash.types import Completion, Shard
from tests.making import turn
from tests.report.making import report, summary

PLAN = [Shard("00000", 2, 2), Shard("00001", 2, 2)]


def under_way() -> View:
    """Two engines, an answer each; one shard judged."""
    progress = Progress(PLAN)
    progress.begin()
    progress.found("00000", 0)
    for n in range(2):
        with progress.request(f"gpu/{n}") as answer:
            answer.append(Completion((7,) * 40, "stop", f"gpu/{n}", 5, 40, 0.1))
        progress.finished("00000", [turn(f"row-{n}", engine=f"gpu/{n}", completion_tokens=40)])
    return view_of("/runs/one", progress, summary(verdicts={"good": 9, "rejected": 1}, reasons={"loop": 1}))


def test_the_page_tells_of_engines_answers_and_verdicts_so_far() -> None:
    text = live_markdown(under_way())
    assert "**2 of 4 conversations, " in text
    assert "Under way." in text
    assert "| gpu/0 | 0 | " in text
    assert "| `loop` | 1 | 10.0% |" in text
    assert text.count("data:image/png") == 4
    assert "`/runs/one/rejects`" in text


def test_the_page_of_a_run_of_days_on_many_engines_is_far_under_a_megabyte() -> None:
    view = under_way()
    course = {f"vllm:Qwen3.6-27B/{n}": [float(1000 + (n * k) % 700) for k in range(359)] for n in range(64)}
    lengths = {2.0 ** (n / 8): 10 * n for n in range(1, 130)}
    engines = tuple(replace(view.engines[0], name=name) for name in course)
    text = live_markdown(replace(view, course=course, bin_s=640.0, lengths=lengths, engines=engines))
    assert len(text) < 500_000


def test_the_page_of_a_run_that_has_nothing_yet_can_be_drawn() -> None:
    text = live_markdown(view_of("/runs/one", Progress(PLAN), summary(turns=0, verdicts={}, output_tokens=0)))
    assert "No shard has its verdicts yet." in text


def test_a_view_can_be_sent_to_another_process() -> None:
    view = under_way()
    assert pickle.loads(pickle.dumps(view)) == view


def test_names_of_engines_do_nothing_on_the_page() -> None:
    view = under_way()
    evil = replace(view.engines[0], name="<script>|http://x.org")
    text = live_markdown(replace(view, engines=(evil,)))
    assert "<script>" not in text
    assert "&lt;script&gt;\\|" in text


def test_the_board_knows_what_is_done_what_failed_and_what_is_missing() -> None:
    board = Board(PLAN)
    board.gave_up(PLAN[:1])
    assert (board.failed, board.missing) == ({"00000"}, PLAN)
    board.published(summary("00001"))
    board.gave_up(PLAN)
    assert (board.failed, board.missing) == ({"00000"}, PLAN[:1])
    board.published(summary("00000"))  # it came through all the same
    assert (board.failed, board.missing) == (set(), [])
    assert [s.shards for s in board.summaries] == [("00000",), ("00001",)]
    assert board.total.turns == 20


LOG = """vllm with m did not start (it ended with 1). Its first error: RuntimeError: out of memory; lower `width`.
 The end of its log:
  ``` <img src=x> HF_TOKEN=hf_abcdefghijklmnop
  connecting to http://me:secret@proxy:8080 with Bearer eyJhbGciOi"""


def test_what_stopped_a_run_stands_first_as_it_was_printed_and_does_nothing() -> None:
    stopped = report(summary(), shards=3, stopped=LOG)
    text = report_markdown(stopped)
    assert text.index("**What stopped it**") < text.index("## Verdicts")
    assert "\n\nvllm with m did not start" in text
    told = text[text.index("````") :]
    assert told.startswith("````\n The end of its log:")
    assert told.split("\n## ")[0].rstrip().endswith("````")
    assert "What stopped it" not in report_markdown(report(summary(), stopped=LOG)), "the run is complete"


@pytest.mark.parametrize(
    "secret",
    ["hf_abcdefghijklmnop", "me:secret", "eyJhbGciOi", "sk-0123456789abcdef", "hunter2hunter2"],
)
def test_secrets_are_cut_out_of_what_programs_print(secret: str) -> None:
    said = f'{LOG}\napi_key=\'sk-0123456789abcdef\', "password": "hunter2hunter2"'
    assert secret in said
    assert secret not in without_secrets(said)


def test_what_is_no_secret_stays() -> None:
    said = "max_tokens=128, tokens: 12345678, --tokenizer /models/qwen, http://127.0.0.1:8000/v1, row-0001@x"
    assert without_secrets(said) == said
