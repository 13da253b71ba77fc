"""`reflash audit data` as it is called: exit codes, JSON, the selection."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from tests.census.making import jsonl
from tests.inspect.auditing import GOOD, PLACEHOLDER
from tests.making import conversations_file

START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"


def audit_data(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START, "audit", "data", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_unfit_set_exits_1_and_writes_what_to_make_again(tmp_path: Path) -> None:
    rows, out = jsonl(tmp_path / "rows.jsonl", [GOOD, PLACEHOLDER, PLACEHOLDER]), tmp_path / "again.parquet"
    answer = audit_data(str(rows), "--out", str(out))
    assert answer.returncode == 1
    assert answer.stdout.startswith("UNFIT: 2 of 3 rows (66.7%) are to be made again")
    assert "source.select" in answer.stdout
    assert pq.read_table(out).column("row").to_pylist() == [2, 3]


def test_a_fit_set_exits_0_and_writes_nothing(tmp_path: Path) -> None:
    rows, out = jsonl(tmp_path / "rows.jsonl", [GOOD, GOOD]), tmp_path / "again.parquet"
    answer = audit_data(str(rows), "--json", "--out", str(out))
    assert answer.returncode == 0
    report = json.loads(answer.stdout)
    assert (report["verdict"], report["rows"], report["duplicate_prompts"]) == ("fit", 2, 1)
    assert not out.exists()
    assert "none was written" in audit_data(str(rows), "--out", str(out)).stdout


def test_what_cannot_be_audited_is_one_message(tmp_path: Path) -> None:
    absent = audit_data(str(tmp_path / "none.parquet"))
    assert (absent.returncode, absent.stdout) == (2, "")
    assert "no such file" in absent.stderr
    talks = audit_data(str(conversations_file(tmp_path / "rows.jsonl", 2)))
    assert talks.returncode == 1
    assert "reflash inspect" in talks.stderr
    assert "Traceback" not in absent.stderr + talks.stderr
