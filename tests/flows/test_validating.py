"""`reflash validate` and `reflash status`: what a run's folder alone tells, and what may be made again from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.validating import validate_run
from reflash.errors import ManifestChanged, RunIncomplete
from reflash.ledger.ledger import Ledger
from reflash.render.shared import shared_renderer
from reflash.report.status import run_status
from reflash.validate.run import validate_shard
from tests.flows.made import MODEL, made_run, settings


def contents(ledger: Ledger) -> dict[str, bytes | None]:
    return {f.name: ledger.store.get(f.name) for f in ledger.store.under("")}


def test_validating_again_gives_the_same_verdicts_and_dataset(tmp_path: Path) -> None:
    ledger = made_run(settings(tmp_path))
    before = {name: data for name, data in contents(ledger).items() if not name.startswith("report.")}
    report = validate_run(ledger.where)
    assert report.complete
    assert {name: data for name, data in contents(ledger).items() if not name.startswith("report.")} == before


def test_a_template_that_changed_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    template = tmp_path / "chat.jinja"
    template.write_text("{% for m in messages %}{{ m['content'] }}\n{% endfor %}")
    ledger = made_run(settings(tmp_path, model=MODEL | {"chat_template": str(template)}))
    before = contents(ledger)
    template.write_text("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}")
    shared_renderer.cache_clear()  # as in a process of its own
    with pytest.raises(ManifestChanged, match=r"model\.rendering"):
        validate_run(ledger.where)
    assert contents(ledger) == before


def test_the_rules_used_last_are_used_again_and_others_may_be_set(tmp_path: Path) -> None:
    run = settings(tmp_path)
    ledger = made_run(run)
    strict = run.model_copy(update={"validation": run.validation.model_copy(update={"min_supervised": 1000})})
    for shard in ledger.committed():
        validate_shard(strict, shard)
    assert validate_run(ledger.where).total.verdicts == {"rejected": 5}
    assert validate_run(ledger.where, ["validation.min_supervised=2"]).total.verdicts == {"good": 5}


def test_a_setting_that_decides_the_rows_cannot_be_changed_by_validating(tmp_path: Path) -> None:
    ledger = made_run(settings(tmp_path))
    with pytest.raises(ManifestChanged, match=r"sampling\.seed"):
        validate_run(ledger.where, ["sampling.seed=9"])


def test_nothing_finished_is_nothing_to_judge(tmp_path: Path) -> None:
    ledger = made_run(settings(tmp_path), shards_wanted=0)
    before = contents(ledger)
    with pytest.raises(RunIncomplete, match="no shard is finished"):
        validate_run(ledger.where)
    assert contents(ledger) == before


def test_a_run_that_is_not_finished_is_judged_as_far_as_it_goes(tmp_path: Path) -> None:
    report = validate_run(made_run(settings(tmp_path), shards_wanted=2).where)
    assert not report.complete
    assert report.total.turns == 4


def test_status_counts_what_lies_there_and_names_the_first_missing_row(tmp_path: Path) -> None:
    ledger = made_run(settings(tmp_path), shards_wanted=2)
    found = run_status(ledger.where)
    assert not found["complete"]
    assert (found["shards"], found["shards_done"], found["rows"], found["rows_left"]) == (3, 2, 5, 1)
    assert found["first_missing"] == f"row-0004 ({tmp_path}/rows.jsonl row 5)"
    assert (found["source_rows"], found["source_rows_refused"]) == (5, 0)


PARTS_OF_A_RUN = ["parts/00001.parquet", "dataset/data/train-00001.parquet", "report.json"]


@pytest.mark.parametrize("name", PARTS_OF_A_RUN)
def test_a_run_that_lacks_a_file_is_not_complete(tmp_path: Path, name: str) -> None:
    ledger = made_run(settings(tmp_path))
    assert run_status(ledger.where)["complete"]
    ledger.store.delete([name])
    assert not run_status(ledger.where)["complete"]


def test_a_run_with_a_torn_part_is_not_complete_and_status_leaves_it_there(tmp_path: Path) -> None:
    ledger = made_run(settings(tmp_path))
    ledger.store.put("parts/00000.parquet", b"PAR1 half a fi")
    assert not run_status(ledger.where)["complete"]
    assert ledger.store.get("parts/00000.parquet") == b"PAR1 half a fi"
