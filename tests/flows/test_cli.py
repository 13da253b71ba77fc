"""The command line: quick, and clear where something is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer import rich_utils
from typer.testing import CliRunner

from flows.cli import app
from reflash.config.load import load_config
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


def test_a_source_that_is_not_there_is_one_message_and_exit_2(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    engine = "engine: {kind: scripted}\n"
    config.write_text(f"run: {tmp_path}/run\nsource: {{path: {tmp_path}/nowhere.jsonl}}\nmodel: {{name: m}}\n{engine}")
    answer = reflash("regenerate", str(config))
    assert answer.returncode == 2
    assert f"{tmp_path}/nowhere.jsonl: no such file or folder; it was looked for in {tmp_path}" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "run").exists()


def test_status_of_a_folder_that_is_no_run_says_so(tmp_path: Path) -> None:
    answer = reflash("status", str(tmp_path))
    assert answer.returncode == 2
    assert "not a run's folder" in answer.stderr


def test_inspect_prints_one_json_object(tmp_path: Path) -> None:
    answer = reflash("inspect", str(conversations_file(tmp_path / "rows.jsonl", 3)), "--json")
    assert answer.returncode == 0
    found = json.loads(answer.stdout)
    assert (found["rows"], found["accepted"], [v["turns"] for v in found["verdicts"]]) == (3, 3, [1, 1, 1])


def test_inspect_of_a_missing_file_names_it_and_the_folder() -> None:
    answer = reflash("inspect", "./nowhere.jsonl", "--json")
    assert answer.returncode == 2
    assert f"nowhere.jsonl: no such file or folder; it was looked for in {Path.cwd()}" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_schema_of_a_config_is_json_with_descriptions() -> None:
    schema = json.loads(reflash("config", "schema").stdout)
    assert "description" in schema["$defs"]["SamplingConfig"]["properties"]["temperature"]


def test_the_example_config_is_printed_as_it_is_to_be_kept(tmp_path: Path) -> None:
    answer = reflash("config", "example", "--engine", "endpoint")
    assert answer.returncode == 0
    (tmp_path / "run.yaml").write_text(answer.stdout)
    assert load_config(tmp_path / "run.yaml").engine.kind == "endpoint"
    refused = reflash("config", "example", "--engine", "vlm")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "did you mean vllm?" in refused.stderr


COMMANDS = ["", "demo", "regenerate", "again", "inspect", "status", "validate", "config", "config example", "engines"]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", [*COMMANDS, "config schema", "engines install", "engines list"])
def test_help_flows_to_the_width_of_the_terminal(command: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", width)
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": str(width)}).output
    lines = [line.strip() for line in shown.partition("Usage:")[2].partition("╭")[0].splitlines()[1:]]
    assert any(lines)
    for line, following in pairwise(lines):
        if line and following:  # the next word would not have fitted: a paragraph has no break of its own
            assert len(f" {line} {following.split()[0]} ") > width - 1, line
