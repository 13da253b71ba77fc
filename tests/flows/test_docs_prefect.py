"""docs/prefect.md followed to the letter: its plain way from an empty Prefect to a finished run."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.flows.house_made import House, free_port, settings, until

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "prefect.md").read_text()
LONG_S = 300.0  # patience with a busy machine


def commands(port: int) -> list[str]:
    """The lines of the plain way, without their remarks and at a port of our own."""
    block = TEXT.partition("**The plain Prefect way**")[2].split("```")[1]
    lines = [part.strip() for line in block.splitlines() for part in line.partition(" #")[0].split("&&")]
    return [line.replace("4200", str(port)) for line in lines if line]


def words(line: str) -> list[str]:
    """`uv run NAME …` as this environment's own NAME: uv would make another one of it."""
    found = shlex.split(line)
    assert found[:2] == ["uv", "run"], line
    return [str(Path(sys.executable).with_name(found[2])), *found[3:]]


@contextmanager
def going(line: str, env: Mapping[str, str], log: Path) -> Iterator[None]:
    """A command that has a terminal of its own, ended with Ctrl-C."""
    with log.open("wb") as out:
        process = subprocess.Popen(words(line), cwd=ROOT, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=5):
            return True
    except OSError:
        return False


def test_the_plain_prefect_way_leads_from_nothing_to_a_finished_run(tmp_path: Path) -> None:
    port = free_port()
    env = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    env |= {"PREFECT_HOME": str(tmp_path / "prefect"), "PREFECT_SERVER_API_PORT": str(port), "DO_NOT_TRACK": "1"}
    env |= {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "XDG_STATE_HOME": str(tmp_path / "state")}
    house = House(tmp_path, port, env)
    [start] = re.findall(r"`(uv run prefect deployment run .*?)`", TEXT, re.DOTALL)
    [automations] = re.findall(r"`(uv run python -m flows\.house\.prepare)`", TEXT)
    run = settings(tmp_path / "work", rows=3)
    with ExitStack() as stack:
        for line in commands(port):
            if line.startswith("export "):
                env.update([line.removeprefix("export ").split("=", 1)])
            elif line.endswith(" start") or " start " in line:
                name = "server" if "server" in line else "worker"
                stack.enter_context(going(line, env, tmp_path / f"{name}.log"))
                until(lambda: healthy(port), LONG_S, "the server answers")
            else:
                subprocess.run(words(line), cwd=ROOT, env=env, check=True)
        subprocess.run(words(automations), cwd=ROOT, env=env, check=True)
        filled = start.replace("'{\"config\": {…}}'", shlex.quote(json.dumps({"config": run})))
        assert filled != start
        subprocess.run(words(filled), cwd=ROOT, env=env, check=True)
        until(lambda: house.states(tmp_path / "work" / "run") == ["Completed"], LONG_S, "the run is completed")
        assert len(house.post("automations/filter", {})) >= 2
        [gpu] = [q for q in house.post("work_pools/reflash/queues/filter", {}) if q["name"] == "gpu"]
        assert gpu["concurrency_limit"] == 1
