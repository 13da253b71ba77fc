"""`reflash inspect` as it is called: several paths, exit codes, bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.making import conversations_file

START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"


def inspect(*arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", START, "inspect", *arguments, "--context", "0"]
    return subprocess.run(command, capture_output=True, check=False, env=os.environ | environment)


def test_what_a_shell_makes_of_a_glob_is_one_set_and_a_broken_file_makes_it_exit_1(tmp_path: Path) -> None:
    first = conversations_file(tmp_path / "a.jsonl", 2)
    second = conversations_file(tmp_path / "b.jsonl", 1)
    assert json.loads(inspect(str(first), str(second), "--json").stdout)["rows"] == 3
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    answer = inspect(str(first), str(tmp_path / "c.parquet"))
    assert answer.returncode == 1
    assert b"accepted 2" in answer.stdout
    assert b"NOT READ" in answer.stdout
    assert b"c.parquet" in answer.stdout


def test_json_is_utf8_whatever_the_names_and_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "é"
    folder.mkdir()
    whole = conversations_file(tmp_path / "a.jsonl", 1).read_bytes() + b"{\n"
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.jsonl")).write_bytes(whole)
    answer = inspect(os.fsencode(folder), "--json", PYTHONIOENCODING="ascii")
    assert (answer.returncode, json.loads(answer.stdout.decode())["rows"]) == (0, 2)
    refused = inspect(os.fsencode(folder) + b"/caf\xe9.jsonl")
    assert refused.returncode == 1
    assert b"not UTF-8; rename it" in refused.stderr
    assert b"Traceback" not in refused.stderr


def test_help_says_the_default_limit() -> None:
    command = [sys.executable, "-c", START, "inspect", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "200"})
    assert "4096" in shown.stdout
    assert "looked at as one set" in shown.stdout
