"""A published dataset as `datasets` loads it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reflash.report.attempt import Attempt
from reflash.report.write import write_report
from reflash.types import Shard
from tests.report.folder import begun, published

pytestmark = pytest.mark.filterwarnings("ignore")  # of `datasets` and what it brings


def write(run: Path, *answers: str) -> None:
    """A published run of one good row a shard, with its card."""
    shards = [Shard(f"{number:05}", 1, 1) for number in range(len(answers))]
    settings, ledger = begun(run, *shards)
    summaries = [
        published(ledger, shard.name, ("what?", answer, ())) for shard, answer in zip(shards, answers, strict=True)
    ]
    write_report(settings, ledger, summaries, Attempt(1, 9, 1.0, ()))


def load(run: Path, cache: Path) -> list[str]:
    """The answers, by the call that the README gives."""
    import datasets

    rows = datasets.load_dataset(str(run / "dataset"), split="train", cache_dir=str(cache))
    return [messages[-1]["content"] for messages in rows["messages"]]


def test_two_runs_that_share_a_cache_each_load_their_own_rows(tmp_path: Path) -> None:
    mine, yours = tmp_path / "mine" / "demo", tmp_path / "yours" / "demo"  # as alike as two runs can be
    write(mine, "mine 0", "mine 1")
    write(yours, "your 0", "your 1")
    assert load(mine, tmp_path / "cache") == ["mine 0", "mine 1"]
    assert load(yours, tmp_path / "cache") == ["your 0", "your 1"]


def test_a_run_made_anew_in_the_same_folder_loads_its_new_rows(tmp_path: Path) -> None:
    run = tmp_path / "demo"
    write(run, "old 0")
    assert load(run, tmp_path / "cache") == ["old 0"]
    shutil.rmtree(run)
    write(run, "new 0")
    assert load(run, tmp_path / "cache") == ["new 0"]


@pytest.mark.parametrize("name", ["test", "validation-set", ".hidden"])
def test_a_run_folder_of_any_name_loads_as_the_training_split(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, "a", "b")
    assert load(tmp_path / name, tmp_path / "cache") == ["a", "b"]
