"""A second pass: what a run set aside is made again and joins its dataset, each row once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.again import second_pass
from flows.validating import validate_run
from reflash.config.run import RunConfig
from reflash.errors import ConfigError, SourceError
from reflash.ledger.ledger import Ledger
from reflash.publish.again import HEADING, give_back
from tests.flows.made import made_run, settings


def ids(run: Path) -> list[str]:
    return [i for f in sorted((run / "dataset" / "data").glob("*.parquet")) for i in pq.read_table(f)["id"].to_pylist()]


@pytest.fixture
def first(tmp_path: Path) -> Ledger:
    """Twelve rows, some of them cut at 28 tokens."""
    ledger = made_run(settings(tmp_path, 12, sampling={"max_new_tokens": 28}))
    assert 0 < len(ids(tmp_path / "run")) < 12
    return ledger


def again(first: Ledger, *overrides: str) -> tuple[RunConfig, Ledger]:
    config = second_pass(first.where, ("truncated",), None, ["sampling.max_new_tokens=200", *overrides])
    return config, made_run(config)


def test_what_was_cut_is_made_again_with_a_larger_budget_and_joins_the_dataset(first: Ledger, tmp_path: Path) -> None:
    before = ids(tmp_path / "run")
    config, second = again(first)
    added = give_back(config.source, second)
    assert added == {first.where: 12 - len(before)}
    assert sorted(ids(tmp_path / "run")) == [f"row-{n:04}" for n in range(12)]
    assert f"{12 - len(before)} rows, in `data/again-*.parquet`" in (first.card() or "")


def test_giving_back_twice_adds_nothing_twice(first: Ledger, tmp_path: Path) -> None:
    config, second = again(first)
    assert give_back(config.source, second) == give_back(config.source, second)
    assert len(ids(tmp_path / "run")) == len(set(ids(tmp_path / "run"))) == 12
    assert (first.card() or "").count(HEADING) == 1


def test_a_pass_goes_on_where_it_stopped(first: Ledger) -> None:
    config, second = again(first)
    give_back(config.source, second)
    assert made_run(config).manifest().id == second.manifest().id


def test_two_passes_over_the_same_rejects_do_not_double_them(first: Ledger, tmp_path: Path) -> None:
    config, second = again(first)
    give_back(config.source, second)
    other = config.model_copy(update={"run": str(tmp_path / "other")})
    assert give_back(other.source, made_run(other)) == {first.where: 0}
    assert len(ids(tmp_path / "run")) == len(set(ids(tmp_path / "run"))) == 12


def test_a_pass_over_a_passes_rejects_reaches_the_first_run(first: Ledger, tmp_path: Path) -> None:
    config = second_pass(first.where, ("truncated",), None, ["sampling.seed=1"])
    second = made_run(config)
    give_back(config.source, second)
    had = len(ids(tmp_path / "run"))
    assert had < 12
    third = second_pass(second.where, ("truncated",), None, ["sampling.max_new_tokens=200"])
    assert give_back(third.source, made_run(third)) == {second.where: 12 - had, first.where: 12 - had}
    assert sorted(ids(tmp_path / "run")) == [f"row-{n:04}" for n in range(12)]


def test_judging_the_first_run_anew_keeps_what_was_added_and_doubles_nothing(first: Ledger, tmp_path: Path) -> None:
    config, second = again(first)
    give_back(config.source, second)
    validate_run(first.where)
    assert sorted(ids(tmp_path / "run")) == [f"row-{n:04}" for n in range(12)]
    assert (first.card() or "").count(HEADING) == 1


def test_a_reason_that_is_none_names_those_there_are(first: Ledger) -> None:
    with pytest.raises(ConfigError, match=r"no such reason.*truncated"):
        second_pass(first.where, ("too-long",), None, [])


def test_nothing_set_aside_for_a_reason_is_said(first: Ledger) -> None:
    with pytest.raises(SourceError, match=r"\(loop\): holds no row"):
        made_run(second_pass(first.where, ("loop",), None, []))
