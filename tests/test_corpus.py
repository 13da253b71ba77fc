"""Every case of the shared corpus of hard inputs, judged by what the case itself says is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.inspect.run import inspect_source
from tests.corpus_checks import CHECKS, LATER, PROSE, Seen
from tests.fake_renderer import FakeRenderer

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
CASES: list[dict[str, Any]] = json.loads((CORPUS / "cases.json").read_text()) if CORPUS.is_dir() else []

pytestmark = pytest.mark.skipif(not CASES, reason="the corpus is not there: it lies in ../shared/corpus")


def look(case: dict[str, Any]) -> Seen:
    path, detail = CORPUS / case["file"], case["detail"]
    context = detail.get("context")
    try:
        report = inspect_source(
            SourceConfig(path=str(path)), renderer=FakeRenderer() if context else None, context=context
        ).to_json()
    except SourceError as error:
        return Seen(path, detail, {}, str(error))
    return Seen(path, detail, json.loads(json.dumps(report, allow_nan=False)), "")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_case_comes_out_as_it_should(case: dict[str, Any]) -> None:
    seen = look(case)
    if seen.error:
        assert case["expected"] == "rejected-with-reason" or seen.allows("error", "rejected"), seen.error
        assert seen.path.name in seen.error
    for key, wanted in case["detail"].items():
        if key in CHECKS and (seen.report or key in ("reason", "report", "missing", "splits", "arguments")):
            CHECKS[key](seen, wanted)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_nothing_is_refused_or_mended_without_a_word(case: dict[str, Any]) -> None:
    seen = look(case)
    if seen.error:
        return
    assert seen.report["accepted"] + seen.report["repaired"] + seen.report["rejected"] == seen.report["rows"]
    if seen.tokenized:
        told = {row["row"] for row in seen.report["reasons"]}
        assert told == set(seen.report["rejected_rows"]) | set(seen.report["suspicious_rows"])
    else:
        assert all(verdict["reason"] for verdict in seen.report["verdicts"] if verdict["verdict"] != "accepted")
    if case["expected"] == "accepted":
        assert not seen.rejected
    if case["expected"] == "rejected-with-reason" and not seen.allows("accept", "decoded", "supported"):
        assert not seen.accepted


def test_every_key_of_the_cases_is_understood() -> None:
    keys = {key for case in CASES for key in case["detail"]}
    assert keys <= set(CHECKS) | PROSE | LATER
