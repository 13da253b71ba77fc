"""`reflash audit data` and `reflash audit ngrams` as they are called: exit codes, JSON, files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from flows.cli import app
from reflash.errors import ConfigError, SourceError
from tests.census.making import jsonl
from tests.inspect.auditing import GOOD, PLACEHOLDER
from tests.making import conversations_file

START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def _apart(home: Path) -> None:
    """No test writes to the user's own folder."""


def audit(*arguments: str) -> Result:
    """The command as typed, in this process: a process of its own takes seconds."""
    return CliRunner().invoke(app, ["audit", *arguments])


def test_an_unfit_set_exits_1_and_writes_what_to_make_again(tmp_path: Path) -> None:
    rows, out = jsonl(tmp_path / "rows.jsonl", [GOOD, PLACEHOLDER, PLACEHOLDER]), tmp_path / "again.parquet"
    answer = audit("data", str(rows), "--out", str(out))
    assert answer.exit_code == 1
    assert answer.stdout.startswith("UNFIT: 2 of 3 rows (66.7%) are to be made again")
    assert "source.select" in answer.stdout
    assert pq.read_table(out).column("row").to_pylist() == [2, 3]


def test_a_fit_set_exits_0_writes_nothing_and_the_next_census_says_what_changed(tmp_path: Path) -> None:
    rows, out = jsonl(tmp_path / "rows.jsonl", [GOOD, GOOD]), tmp_path / "again.parquet"
    answer = audit("data", str(rows), "--json", "--out", str(out))
    assert answer.exit_code == 0
    report = json.loads(answer.stdout)
    assert (report["verdict"], report["rows"], report["duplicate_prompts"], report["drift"]) == ("fit", 2, 1, None)
    assert not out.exists()
    jsonl(rows, [GOOD, GOOD, PLACEHOLDER])
    again = audit("data", str(rows), "--no-history").stdout
    assert "since the last census" not in again
    again = audit("data", str(rows)).stdout
    assert "verdict: fit to unfit (worse)" in again
    assert "empty rows: 0 to 1 (worse)" in again
    assert "as at the last census" in audit("data", str(rows)).stdout


def test_a_file_and_options_say_what_is_empty_and_the_later_wins(tmp_path: Path, home: Path) -> None:
    rows, config = jsonl(tmp_path / "rows.jsonl", [GOOD, PLACEHOLDER]), tmp_path / "audit.yaml"
    config.write_text("history: false\nrules: {threshold: 5}\n")
    assert audit("data", str(rows), "--config", str(config)).exit_code == 0
    assert audit("data", str(rows), "--config", str(config), "--threshold", "6").exit_code == 1
    assert not home.exists()
    wrong = audit("data", str(rows), "--set", "rules.treshold=8").exception
    assert isinstance(wrong, ConfigError)
    assert "rules.treshold: is no setting of a census; those are threshold, " in str(wrong)


def test_conversations_are_counted_with_the_same_command(tmp_path: Path) -> None:
    rows, out = conversations_file(tmp_path / "rows.jsonl", 3), tmp_path / "again.parquet"
    answer = audit("data", str(rows), "--out", str(out))
    assert answer.exit_code == 1
    assert "of 3 answers 3 are a placeholder" in answer.stdout
    assert pq.read_table(out).column("id").to_pylist() == ["row-0000", "row-0001", "row-0002"]


def test_a_list_of_items_made_by_the_command_is_looked_for(tmp_path: Path) -> None:
    bench, items, left = tmp_path / "bench.jsonl", tmp_path / "items.parquet", tmp_path / "items-rows.parquet"
    bench.write_text(
        json.dumps({"task": "How many apples does Tom have if he buys three and eats one of them?"}) + "\n"
    )
    named = audit("ngrams", str(bench), "--out", str(items), "--name", "Apples").exception
    assert isinstance(named, SourceError)
    assert "row 1: no text under prompt" in str(named)
    made = audit("ngrams", str(bench), "--out", str(items), "--name", "Apples", "--column", "task")
    assert "1 items of 1 benchmarks" in made.stdout
    asked = "Please: how many apples does Tom have, if he buys THREE and eats one of them? Explain."
    rows = [{"prompt": asked, "response": "He has two apples left."}, {"prompt": "Hello?", "response": "Good morning."}]
    answer = audit(
        "data",
        str(jsonl(tmp_path / "r.jsonl", rows)),
        "--set",
        f"rules.items=[{items}]",
        "--items-out",
        str(left),
    )
    assert answer.exit_code == 0
    assert answer.stdout.startswith("MEND: ")
    assert "Apples: 1 of 1 items, in 1 rows: 1" in answer.stdout
    assert pq.read_table(left).column("row").to_pylist() == [1]


def test_what_cannot_be_audited_is_one_message(tmp_path: Path) -> None:
    command = [sys.executable, "-c", START, "audit", "data", str(tmp_path / "none.parquet")]
    absent = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert (absent.returncode, absent.stdout) == (2, "")
    assert "no such file" in absent.stderr
    assert "Traceback" not in absent.stderr
    unlisted = audit("data", str(jsonl(tmp_path / "rows.jsonl", [GOOD])), "--set", "rules.items=[none.parquet]")
    assert isinstance(unlisted.exception, ConfigError)
    assert "none.parquet: no such list" in str(unlisted.exception)
