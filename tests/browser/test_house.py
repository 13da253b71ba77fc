"""A run from its form to its report, in a real browser, on what `reflash up` starts: as a person goes about it.

With REFLASH_SCREENSHOTS=1 the pictures in docs/images/, which README and docs show, are taken anew, of the whole demo.
"""

from __future__ import annotations

import os
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reflash.engines import linux
from tests.browser.served import ROOT, Opener
from tests.flows.house_made import House, house_in, settings, started_by, until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.prefect,
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore"),
]

WAIT_MS = 60_000
LONG_S = 900.0  # patience with a busy machine
DEMO = "regenerate-demo"
SOURCE = {"path": "pkg://reflash/demo/conversations.jsonl"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[House]:
    """A house that is up; at the end it is down, and nothing of it is left."""
    mark = uuid.uuid4().hex
    made = house_in(tmp_path_factory.mktemp("house"), mark)
    try:
        up = made.reflash("up", "--port", str(made.port))
        assert up.returncode == 0, up.stdout + up.stderr
        yield made
    finally:
        down = made.reflash("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert started_by(mark) == []


ANEW = bool(os.environ.get("REFLASH_SCREENSHOTS"))


def picture(page: Any, name: str, height: int, folder: Path) -> None:
    """Take one; one of a blank page would be smaller."""
    page.set_viewport_size({"width": 1400, "height": height})
    path = (ROOT / "docs" / "images" if ANEW else folder) / f"{name}.png"
    page.screenshot(path=path)
    assert 20_000 < path.stat().st_size < 300_000


def graph(page: Any) -> None:
    """Wait for a run's graph. It is painted on a canvas: no element tells when."""
    page.locator("canvas").wait_for(timeout=WAIT_MS)
    page.wait_for_timeout(3000)


def ui(house: House) -> str:
    return f"http://127.0.0.1:{house.port}/v2"


def seen(found: Any) -> Any:
    """The same element, once it can be seen."""
    found.wait_for(state="visible", timeout=WAIT_MS)
    return found


def form(house: House, open_tab: Opener, deployment: str) -> Any:
    """The form of a deployment, reached as a person does: its page, Run, Custom run."""
    page = open_tab(f"{ui(house)}/deployments", height=1000).page
    seen(page.get_by_role("link", name=deployment, exact=True)).click()
    seen(page.get_by_role("button", name="Run", exact=True)).click()
    seen(page.get_by_role("menuitem", name="Custom run")).click()
    seen(page.get_by_role("textbox", name="run", exact=True))
    return page


def submit(page: Any) -> None:
    page.get_by_role("button", name="Submit").click()


def follow(page: Any, house: House, run: str) -> None:
    """Go to the page of a run once the form is gone. (Its own link there is gone in a moment.)"""
    page.wait_for_url(re.compile("tab=Runs"), timeout=WAIT_MS)
    page.goto(f"{ui(house)}/runs/flow-run/{run}")


def runs_of(house: House, deployment: str) -> list[dict[str, Any]]:
    named = {"deployments": {"name": {"any_": [deployment]}}, "sort": "EXPECTED_START_TIME_DESC"}
    return list(house.post("flow_runs/filter", named))


def choose(page: Any, *way: str) -> None:
    """Open the menu of a run's page and go on from there."""
    seen(page.get_by_role("button", name="Open menu")).click()
    seen(page.get_by_role("menuitem", name=way[0], exact=True)).click()
    for name in way[1:]:
        seen(page.get_by_role("alertdialog").get_by_role("button", name=name, exact=True)).click()


def shows(page: Any, state: str) -> None:
    """Wait until the head of a run's page, which nobody loads anew, says so."""
    seen(page.get_by_role("main").get_by_text(state, exact=True).first)


def safe(folder: Path) -> list[Path]:
    return sorted((folder / "segments").rglob("*.parquet"))


def test_the_form_explains_itself_and_refuses_bad_values_at_their_fields(
    house: House, open_tab: Opener, tmp_path: Path
) -> None:
    page = form(house, open_tab, DEMO)
    seen(page.get_by_text("The same folder goes on where it stopped.").first)
    picture(page, "form", 900, tmp_path)
    warm = page.get_by_role("spinbutton", name="temperature (Optional)")
    warm.fill("5")
    submit(page)
    assert warm.evaluate("field => field.validationMessage") == "Value must be less than or equal to 2."
    warm.fill("0.2")
    page.get_by_role("textbox", name="run", exact=True).fill("")
    submit(page)
    seen(page.get_by_text("'run' is a required property"))
    assert runs_of(house, DEMO) == []


def test_the_demo_started_through_its_form_is_watched_and_read(house: House, open_tab: Opener, tmp_path: Path) -> None:
    page = form(house, open_tab, DEMO)
    if not ANEW:
        page.get_by_role("spinbutton", name="max_new_tokens (Optional)").fill("24")  # answers broken off, but soon
    submit(page)
    [run] = until(lambda: runs_of(house, DEMO), 60, "a run is there")
    follow(page, house, run["id"])
    seen(page.get_by_role("tab", name="Artifacts")).click()
    share = until(lambda: under_way(house, run["id"], at_least=30 if ANEW else 0), LONG_S, "some rows are done")
    page.reload()
    card = page.get_by_role("tabpanel").get_by_role("link").filter(has=page.get_by_role("heading", name="progress"))
    seen(card.filter(has_text=re.compile(r"\d+ of 128 conversations, \d+ tok/s")))
    graph(page)
    picture(page, "live", 1010, tmp_path)
    card.click()
    [shown] = re.findall(r"Progress: ([\d.]+)%", seen(page.get_by_text("Progress: ")).inner_text())
    assert float(shown) >= share
    page.go_back()
    until(lambda: house.run(run["id"])["state_type"] == "COMPLETED", LONG_S, "completed")
    shows(page, "Completed")
    seen(page.get_by_role("tab", name="Logs")).click()
    page.reload()
    seen(page.get_by_text("Plan:"))
    page.get_by_text("Oldest to newest").click()  # the first lines are Prefect's, of how it began
    seen(page.get_by_role("option", name="Newest to oldest")).click()
    seen(page.get_by_text("are fit to train on").first)
    graph(page)
    picture(page, "run", 1110, tmp_path)
    seen(page.get_by_role("tab", name="Artifacts")).click()
    seen(page.get_by_role("tabpanel").get_by_role("heading", name="report")).click()
    body = seen(page.get_by_test_id("markdown-display"))
    seen(body.get_by_text(re.compile(r"\d+ of 1\d\d turns .* are fit to train on")).first)
    for chart in ("Turns by verdict and reason", "Turns by how they ended"):
        seen(body.get_by_role("img", name=chart).first)
    picture(page, "report", 1225, tmp_path)


def under_way(house: House, run: str, at_least: float) -> float:
    """The share of a run that is done, in percent, where it is so much, neither nothing nor all."""
    found = house.post("artifacts/filter", {"flow_runs": {"id": {"any_": [run]}}})
    shares = [float(one["data"]) for one in found if one["key"] == "progress"]
    return shares[0] if shares and at_least < shares[0] < 100 else 0.0


def test_a_run_cancelled_in_its_menu_is_gone_within_20_seconds_and_a_copy_of_it_goes_on(
    house: House, open_tab: Opener, tmp_path: Path
) -> None:
    [demo] = [d for d in house.post("deployments/filter", {}) if d["name"] == DEMO]
    config = {**demo["parameters"]["config"], "run": str(tmp_path / "run"), "source": {**SOURCE, "limit": 24}}
    run = house.start(DEMO, {"config": config})
    until(lambda: safe(tmp_path / "run"), LONG_S, "a row is safe")
    page = open_tab(f"{ui(house)}/runs/flow-run/{run}").page
    worker = house.processes()["worker"]
    assert len(linux.descendants(worker)) >= 2, "the run and its engine"
    choose(page, "Cancel", "Cancel Flow Run")
    until(lambda: linux.descendants(worker) == [], 20, "the run and its engine are gone")
    kept = safe(tmp_path / "run")
    assert kept
    shows(page, "Cancelled")
    choose(page, "Copy to new run")
    assert seen(page.get_by_role("textbox", name="run", exact=True)).input_value() == str(tmp_path / "run")
    submit(page)
    again = until(lambda: [r for r in house.runs_of(tmp_path / "run") if r["id"] != run], 60, "a second run")[0]
    follow(page, house, again["id"])
    until(lambda: house.run(again["id"])["state_type"] == "COMPLETED", LONG_S, "completed")
    shows(page, "Completed")


def test_a_killed_run_and_the_one_that_finished_it_stand_side_by_side(
    house: House, open_tab: Opener, tmp_path: Path
) -> None:
    run = house.start("regenerate", {"config": settings(tmp_path, rows=60, script="slow")})
    until(lambda: safe(tmp_path / "run"), LONG_S, "a row is safe")
    page = open_tab(f"{ui(house)}/runs/flow-run/{run}").page
    shows(page, "Running")
    for one in linux.descendants(house.processes()["worker"]):
        os.kill(one.pid, signal.SIGKILL)
    shows(page, "Crashed")
    until(lambda: house.states(tmp_path / "run") == ["Crashed", "Completed"], LONG_S, "another one has finished it")
    page.goto(f"{ui(house)}/runs")
    both = page.get_by_role("main").get_by_role("listitem").filter(has_text="run · smol · 60 rows")
    seen(both.nth(1))
    assert sorted(state for state in ("Crashed", "Completed") if both.filter(has_text=state).count() == 1) == [
        "Completed",
        "Crashed",
    ]


def test_a_run_refused_for_its_source_is_retried_in_its_menu(house: House, open_tab: Opener, tmp_path: Path) -> None:
    wanted = settings(tmp_path, rows=3)
    aside = (tmp_path / "rows.jsonl").rename(tmp_path / "aside.jsonl")
    run = house.start("regenerate", {"config": wanted})
    page = open_tab(f"{ui(house)}/runs/flow-run/{run}").page
    until(lambda: house.run(run)["state_name"] == "Refused", LONG_S, "refused")
    shows(page, "Refused")
    aside.rename(tmp_path / "rows.jsonl")
    choose(page, "Retry", "Retry")
    until(lambda: house.run(run)["state_type"] == "COMPLETED", LONG_S, "completed")
    page.reload()
    shows(page, "Completed")
