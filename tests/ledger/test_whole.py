"""Whole Parquet that is not what the run made: cut, doubled or copied files, and an index that says otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from flows.validating import validate_run
from reflash.config.run import RunConfig
from reflash.errors import ManifestChanged, ReflashError, RunIncomplete, StoreError
from reflash.ledger import names
from reflash.ledger.ledger import Ledger
from reflash.ledger.manifest import check_same
from reflash.ledger.schema import TURN, from_parquet, to_parquet
from reflash.ledger.whole import check_folder, read_footer
from reflash.report.status import run_status
from tests.flows.made import made_run, settings
from tests.making import manifest

PARTS: dict[str, Callable[[pa.Table, pa.Table], pa.Table]] = {
    "short": lambda part, other: part.slice(0, 1),
    "doubled": lambda part, other: pa.concat_tables([part, part.slice(0, 1)]),
    "one twice, one not": lambda part, other: pa.concat_tables([part.slice(0, 1), part.slice(0, 1)]),
    "a copy": lambda part, other: other,
    "of another conversation": lambda part, other: part.set_column(0, "conversation", pa.array(["zzz", "row-0003"])),
}
COUNTED = ("short", "doubled")  # what a count alone tells


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    config = settings(tmp_path_factory.mktemp("whole"))
    made_run(config)
    return config


def copied(run: RunConfig, to: Path) -> tuple[RunConfig, Ledger]:
    shutil.copytree(run.run, to / "run")
    config = run.model_copy(update={"run": str(to / "run")})
    return config, made_run(config)  # all of it is there, so only the verdicts of the copied parts are made


def table_of(ledger: Ledger, name: str) -> pa.Table:
    return from_parquet(ledger.store.get(name) or b"", name)


@pytest.mark.parametrize("told", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", PARTS)
def test_a_part_that_is_not_what_was_made_is_named_and_made_anew_once_it_is_deleted(
    run: RunConfig, tmp_path: Path, what: str, told: bool
) -> None:
    config, ledger = copied(run, tmp_path)
    part, other = table_of(ledger, names.part("00001")), table_of(ledger, names.part("00000"))
    wrong = PARTS[what](part, other)
    facts = (wrong.schema.metadata or part.schema.metadata) if told else {b"run": part.schema.metadata[b"run"]}
    ledger.store.put(names.part("00001"), to_parquet(wrong, **{k.decode(): v.decode() for k, v in facts.items()}))
    for again in (lambda: validate_run(ledger.where), lambda: made_run(config)):
        with pytest.raises(ReflashError, match=r"parts/00001\.parquet.*delete it and give the command that began"):
            again()
    if what in COUNTED or (told and what == "a copy"):
        status = run_status(ledger.where)
        assert (status["complete"], "parts/00001.parquet" in status["damaged"]) == (False, True)
    ledger.store.delete([names.part("00001")])
    made_run(config)
    assert validate_run(ledger.where).total.verdicts == {"good": 5}
    assert run_status(ledger.where)["complete"]


INDEXES: dict[str, Callable[[list[dict[str, object]]], object]] = {
    "fewer rows": lambda shards: shards[0].update(rows=1),
    "more rows than there are": lambda shards: shards[0].update(rows=10**18),
    "fewer turns": lambda shards: shards[0].update(turns=1),
    "a shard taken out": lambda shards: shards.pop(),
    "a shard put in": lambda shards: shards.append({"name": "00099", "rows": 2, "turns": 2}),
}


@pytest.mark.parametrize("what", INDEXES)
def test_an_index_that_says_other_than_the_plan_is_refused_and_made_again(
    run: RunConfig, tmp_path: Path, what: str
) -> None:
    config, ledger = copied(run, tmp_path)
    index = orjson.loads(ledger.store.get(names.INDEX) or b"")
    INDEXES[what](index["shards"])
    ledger.store.put(names.INDEX, orjson.dumps(index))
    for again in (lambda: validate_run(ledger.where), lambda: made_run(config)):
        with pytest.raises(StoreError, match=r"delete plan/index\.json there and give the command that began"):
            again()
    if what != "a shard put in":  # of which even the first row cannot be named
        assert not run_status(ledger.where)["complete"]
    ledger.store.delete([names.INDEX])
    with pytest.raises(RunIncomplete, match=r"plan/index\.json is missing: give the command that began"):
        validate_run(ledger.where)
    made_run(config)
    assert validate_run(ledger.where).total.verdicts == {"good": 5}


@pytest.mark.parametrize("name", ["00001", "00077"])
def test_a_plan_s_file_that_is_a_copy_of_another_is_refused(run: RunConfig, tmp_path: Path, name: str) -> None:
    config, ledger = copied(run, tmp_path)
    ledger.store.put(names.plan(name), ledger.store.get(names.plan("00000")) or b"")
    for again in (lambda: validate_run(ledger.where), lambda: made_run(config)):
        with pytest.raises(StoreError, match=rf"plan/{name}\.parquet .*delete plan/index\.json"):
            again()
    ledger.store.delete([names.INDEX, *([names.plan(name)] if name == "00077" else [])])
    made_run(config)
    assert validate_run(ledger.where).complete


def test_a_torn_part_is_no_fault_but_made_again(run: RunConfig, tmp_path: Path) -> None:
    config, ledger = copied(run, tmp_path)
    ledger.store.put(names.part("00001"), b"PAR1 half a fi")
    check_folder(ledger)
    made_run(config)
    assert run_status(ledger.where)["complete"]


def test_a_footer_longer_than_what_is_read_at_first_is_read_whole(run: RunConfig, tmp_path: Path) -> None:
    _, ledger = copied(run, tmp_path)
    table = TURN.empty_table()
    ledger.store.put("parts/long.parquet", to_parquet(table, file="parts/long.parquet", note="x" * 300_000))
    footer = read_footer(ledger.store, "parts/long.parquet")
    assert footer is not None
    assert (footer.rows, footer.file) == (0, "parts/long.parquet")
    assert read_footer(ledger.store, "parts/none.parquet") is None


def test_words_of_a_manifest_move_no_cursor() -> None:
    old = manifest(model={"name": "\x1b[31mE", "\x1b]0;x\x07": 1})
    with pytest.raises(ManifestChanged) as error:
        check_same(old, manifest(model={"name": "fake"}), "run")
    assert all(line.isprintable() for line in str(error.value).split("\n"))
