"""What a person sees of a run in the Prefect UI, in a real browser."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.served import SPITEFUL, Opener, Run, Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),  # the first test starts a server and makes a run
    pytest.mark.filterwarnings("ignore"),
]

WAIT_MS = 15_000
CHARTS = (
    "Output tokens a second over time",
    "Turns by output length in tokens",
    "Turns by how they ended",
    "Turns by verdict and reason",
)
# Prefect's own: icons it does not ship, its statistics, and the task of an artifact that no task made.
OF_THE_UI = re.compile(r"favicon|completed\.svg|amplitude\.com|/api/task_runs/filter")


def seen(found: Any) -> Any:
    """The same element, once it can be seen."""
    found.wait_for(state="visible", timeout=WAIT_MS)
    return found


def rows_of(table: Any) -> list[list[str]]:
    """The cells of a table's body, as text."""
    seen(table.locator("tbody tr").first)
    return [[c.inner_text() for c in row.get_by_role("cell").all()] for row in table.locator("tbody tr").all()]


def contrast(picture: bytes) -> np.ndarray:
    """Each pixel's contrast to the ground, the most frequent colour: 1 to 21."""
    from PIL import Image

    rgb = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).reshape(-1, 3) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    light = linear @ np.array([0.2126, 0.7152, 0.0722]) + 0.05
    values, counts = np.unique(light, return_counts=True)
    ground = values[counts.argmax()]
    return np.maximum(light, ground) / np.minimum(light, ground)


def test_a_run_is_found_by_its_name_and_opens(server: Server, run: Run, open_tab: Opener) -> None:
    page = open_tab(f"{server.url}/v2/runs").page
    seen(page.get_by_role("link", name=run.name)).click()
    page.wait_for_url(f"{run.page}**")
    seen(page.get_by_text("18 Task runs"))
    page.wait_for_function("title => document.title.startsWith(title)", arg=f"Flow Run: {run.name}")
    assert {run.name, "Completed"} <= set(page.get_by_role("main").inner_text().splitlines())


def test_every_stage_of_every_shard_stands_in_the_task_runs(run: Run, open_tab: Opener) -> None:
    page = open_tab(f"{run.page}?tab=TaskRuns").page
    shards = [f"{n:05}" for n in range(run.report["shards"])]
    stages = {f"{stage} {s}" for stage in ("generate", "validate", "publish") for s in shards}
    wanted = {"look at this machine", "plan", "report"} | stages
    seen(page.get_by_text(f"({len(wanted)} Completed)"))
    links = page.get_by_role("tabpanel").get_by_role("link")
    assert wanted <= {link.inner_text() for link in links.all()}


def test_the_artifacts_tab_says_in_a_line_each_how_the_run_came_out(run: Run, open_tab: Opener) -> None:
    page = open_tab(f"{run.page}?tab=Artifacts").page
    cards = page.get_by_role("tabpanel").get_by_role("link")
    for key, said in {
        "plan": "60 rows read; 60 conversations",
        "progress": "60 of 60 conversations, .*of 60 judged turns are good",
        "shards": "5 shards: 5 done",
        "verdicts": "by verdict and reason",
        "report": f"{run.report['good']} of 60 turns",
    }.items():
        card = cards.filter(has=page.get_by_role("heading", name=key, exact=True))
        seen(card.filter(has_text=re.compile(said)))
    assert {"machine", "machine-findings"} < set(run.artifacts)
    assert cards.count() == 7


def test_progress_stands_at_100_percent(run: Run, open_tab: Opener) -> None:
    page = open_tab(run.artifacts["progress"]).page
    seen(page.get_by_text("Progress: 100%"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_report_shows_verdicts_and_charts_that_can_be_read(
    run: Run, open_tab: Opener, theme: str, tmp_path: Path
) -> None:
    page = open_tab(run.artifacts["report"], theme=theme, height=2000).page
    report = run.report
    body = page.get_by_test_id("markdown-display")
    seen(body.get_by_text(f"{report['good']} of 60 turns"))
    rows = {cells[0]: int(cells[1]) for cells in rows_of(body.get_by_role("table").first)}
    assert rows["good"] == report["good"] < 60
    assert rows["truncated"] == report["total"]["reasons"]["truncated"] > 0
    assert page.evaluate("document.documentElement.className") == theme
    for name in CHARTS:
        chart = seen(body.get_by_role("img", name=name))
        assert chart.evaluate("image => image.complete && image.naturalWidth") > 500
        picture = chart.screenshot(path=tmp_path / f"{theme}.png")
        assert (contrast(picture) > 3).mean() > 0.002, name


def test_the_shards_table_has_one_row_a_shard_with_the_worst_first(run: Run, open_tab: Opener) -> None:
    page = open_tab(run.artifacts["shards"]).page
    rows = rows_of(page.get_by_role("table"))
    assert sorted(cells[0] for cells in rows) == [f"{n:05}" for n in range(run.report["shards"])]
    assert {cells[1] for cells in rows} == {"done"}
    shares = [float(cells[3].rstrip("%")) for cells in rows]
    assert shares == sorted(shares)


@pytest.mark.parametrize(("key", "last"), [("plan", "count"), ("shards", "engine"), ("verdicts", "share")])
def test_no_figure_of_a_table_is_cut_off(run: Run, open_tab: Opener, key: str, last: str) -> None:
    table = seen(open_tab(run.artifacts[key]).page.get_by_role("table"))
    beyond = """(table, last) => {
        const column = [...table.querySelectorAll("th")].find(th => th.innerText === last)
        return column.getBoundingClientRect().right - table.parentElement.getBoundingClientRect().right
    }"""
    assert table.evaluate(beyond, last) <= 1  # CSS pixels


def test_the_logs_tell_the_run_in_a_line_an_event(run: Run, open_tab: Opener) -> None:
    page = open_tab(f"{run.page}?tab=Logs", height=4000).page  # lines out of sight are not there
    seen(page.get_by_text("Finished in state Completed()"))
    lines = page.get_by_role("log").get_by_role("listitem").all_inner_texts()
    told = "\n".join(lines)
    assert len(lines) < 40
    for event in (
        r"Plan: 60 rows read; 60 conversations, 60 turns to generate, in 5 shards",
        r"Engines ready after \d+ s: 1 × scripted",
        r"Shard 00004 committed: 12 conversations",
        r"Shard 00004: 12 turns, \d+ tokens; \d+ good, \d+ rejected \(truncated \d+\)",
        rf"{run.report['good']} of 60 turns .* are fit to train on\. Report: .*report\.md",
    ):
        assert re.search(event, told), event


def test_text_of_the_data_set_is_shown_as_it_is_and_does_nothing(run: Run, open_tab: Opener) -> None:
    tab = open_tab(run.artifacts["report"])
    cell = seen(tab.page.get_by_role("cell", name=SPITEFUL).first)
    assert SPITEFUL in cell.inner_text().replace("\u200b", "")  # a space of no width keeps addresses from being links
    assert cell.get_by_role("link").count() == 0
    assert not [url for url in tab.asked_elsewhere if "example.org" in url]


def test_nothing_of_ours_makes_the_browser_complain(run: Run, open_tab: Opener) -> None:
    for url in (run.page, *run.artifacts.values()):
        tab = open_tab(url)
        tab.page.wait_for_load_state("networkidle")
        assert [c for c in tab.complaints if not OF_THE_UI.search(c)] == [], url
