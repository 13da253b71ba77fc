"""What a set says of itself stands on the page as text, and does nothing there."""

from __future__ import annotations

from pathlib import Path

from reflash.census.audit import Audited, run_audit
from reflash.config.audit import DataAudit
from reflash.report.census import census_markdown, findings_table
from tests.census.making import jsonl

HOSTILE = "<img src=x onerror=alert(1)> | `code` [link](http://example.com) \x1b[31m" + "long " * 2000


def audited(folder: Path, *answers: str) -> Audited:
    rows = [{"prompt": f"{n} {HOSTILE}", "response": answer} for n, answer in enumerate(answers)]
    return run_audit(DataAudit(path=str(jsonl(folder / "rows.jsonl", rows)), history=False))


def test_foreign_words_are_escaped_and_cut(tmp_path: Path) -> None:
    page = census_markdown(audited(tmp_path, HOSTILE, HOSTILE, "", "ok"))
    assert "<img" not in page
    assert "\x1b" not in page
    assert "](http" not in page
    assert max(len(line) for line in page.splitlines() if "data:image" not in line) < 2000
    assert "## Examples" in page


def test_findings_are_a_table_of_plain_text(tmp_path: Path) -> None:
    rows = findings_table(audited(tmp_path, "a whole answer", "", "ok", "ok").report)
    assert rows[0] == {
        "kind": "fault",
        "what": "placeholder answer",
        "rows": "2",
        "share": "50.0%",
        "for example": "3, 4",
    }
    assert {type(cell) for row in rows for cell in row.values()} == {str}
    assert findings_table(audited(tmp_path, "a whole answer").report)[0]["what"] == "no fault found"
