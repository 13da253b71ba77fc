"""Sets on the Hub, against a Hub on the loopback in a process of its own (its address is read at import)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = ["own/set", "hf:own/set:test", "hf://datasets/own/set/test.jsonl", "own/none", "hf:own/set:dev"]


@pytest.mark.slow
def test_a_set_is_streamed_from_the_hub_in_every_form_of_its_name() -> None:
    root = Path(__file__).parents[2]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.sources.fake_hub", *NAMES],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    train, test, file, missing, split = map(json.loads, done.stdout.splitlines())
    assert (train["ids"], train["files"]) == (["r0", "r1", "r2", "r3", "r4"], ["own/set:train"])
    assert "its splits: train, test" in train["notes"][0]
    assert (test["ids"], test["files"]) == (["r0"], ["own/set:test"])
    assert (file["ids"], file["files"]) == (["r0"], ["hf://datasets/own/set/test.jsonl"])
    assert len({train["digest"], test["digest"], file["digest"]}) == 3
    assert "own/none" in missing["error"]
    assert "no split dev; its splits: train, test" in split["error"]
