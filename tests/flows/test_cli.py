"""The command line: quick, and clear where something is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.making import conversations_file

START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"


def reflash(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START, *arguments], capture_output=True, text=True, check=False)


def test_help_does_not_wait_for_heavy_imports() -> None:
    heavy = ("prefect", "transformers", "pyarrow", "datasets")
    code = f"import sys, flows.cli; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.parametrize("command", ["demo", "regenerate", "inspect", "status", "validate", "config"])
def test_help_names_every_command(command: str) -> None:
    assert command in reflash("--help").stdout


def test_a_config_that_cannot_work_is_one_message_and_exit_2(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("run: x\n")
    answer = reflash("regenerate", str(config))
    assert answer.returncode == 2
    assert "run.yaml" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_status_of_a_folder_that_is_no_run_says_so(tmp_path: Path) -> None:
    answer = reflash("status", str(tmp_path))
    assert answer.returncode == 2
    assert "not a run's folder" in answer.stderr


def test_inspect_prints_one_json_object(tmp_path: Path) -> None:
    answer = reflash("inspect", str(conversations_file(tmp_path / "rows.jsonl", 3)), "--json")
    assert answer.returncode == 0
    found = json.loads(answer.stdout)
    assert (found["rows"], found["accepted"], [v["turns"] for v in found["verdicts"]]) == (3, 3, [1, 1, 1])


def test_inspect_of_a_missing_file_names_it() -> None:
    answer = reflash("inspect", "./nowhere.jsonl", "--json")
    assert answer.returncode == 1
    assert "nowhere.jsonl" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_schema_of_a_config_is_json_with_descriptions() -> None:
    schema = json.loads(reflash("config", "schema").stdout)
    assert "description" in schema["$defs"]["SamplingConfig"]["properties"]["temperature"]
