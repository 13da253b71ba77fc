"""What changed since the last census of the same set, looked at in the same way."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflash.census.audit import run_audit
from reflash.config.audit import AuditRules, DataAudit
from reflash.store import kept
from tests.census.making import jsonl
from tests.inspect.auditing import END, GOOD, PLACEHOLDER, THOUGHT, row


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


def audit(folder: Path, *rows: object, **more: object) -> DataAudit:
    path = jsonl(folder / "rows.jsonl", list(rows))  # type: ignore[arg-type]
    return DataAudit.model_validate({"path": str(path), **more})


def test_the_first_census_has_nothing_to_compare_with_and_the_second_says_what_changed(tmp_path: Path) -> None:
    assert run_audit(audit(tmp_path, GOOD, PLACEHOLDER)).drift is None
    others = (row([THOUGHT, *range(start, start + 30), END]) for start in (500, 600))
    drift = run_audit(audit(tmp_path, GOOD, *others)).drift
    assert drift is not None
    changes = {one.what: (one.before, one.now, one.worse) for one in drift.changes}
    assert changes["rows"] == ("2", "3", False)
    assert changes["empty rows"] == ("1", "0", False)
    assert changes["answer at or under the threshold"] == ("1", "0", False)
    assert changes["verdict"] == ("unfit", "fit", False)
    assert not drift.worse


def test_a_set_that_became_worse_says_so_once(tmp_path: Path) -> None:
    run_audit(audit(tmp_path, GOOD))
    worse = run_audit(audit(tmp_path, GOOD, PLACEHOLDER))
    assert worse.worse
    same = run_audit(audit(tmp_path, GOOD, PLACEHOLDER))
    assert (same.worse, same.unfit) == (False, True)
    assert same.drift is not None
    assert same.drift.changes == ()


def test_other_rules_are_another_census(tmp_path: Path) -> None:
    run_audit(audit(tmp_path, GOOD))
    assert run_audit(audit(tmp_path, GOOD, rules=AuditRules(threshold=7))).drift is None
    assert run_audit(audit(tmp_path, GOOD, history=False)).drift is None
    assert run_audit(audit(tmp_path, GOOD)).drift is not None


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"version":1,"at":"","figures":{"found":{},"rows":"x"}}'])
def test_what_was_kept_by_another_version_is_no_fault(tmp_path: Path, text: bytes) -> None:
    run_audit(audit(tmp_path, GOOD))
    (name,) = (path.name for path in kept.folder().iterdir())
    kept.keep(name, text)
    assert run_audit(audit(tmp_path, GOOD)).drift is None
    assert run_audit(audit(tmp_path, GOOD)).drift is not None


def test_a_folder_that_cannot_be_written_costs_the_comparison_alone(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where a folder should be")
    assert run_audit(audit(tmp_path, GOOD)).drift is None
    assert run_audit(audit(tmp_path, GOOD)).drift is None
