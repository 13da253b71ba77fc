"""A house with a password and PostgreSQL, as one that others can reach would be: here only this machine can."""

from __future__ import annotations

import shutil
import urllib.request
import uuid
from pathlib import Path
from urllib.error import HTTPError

import pytest

from benchmarks.servers import database
from tests.flows.house_made import House, house_in, settings, started_by, until

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(shutil.which("initdb") is None, reason="PostgreSQL is missing: its initdb is not in PATH"),
]

AUTH = "me:a pass=word"
LONG_S = 300.0  # patience with a busy machine


def status(house: House, path: str) -> int:
    """What the server says to whoever brings no password."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{house.port}/{path}", timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_with_a_password_and_postgresql_runs_complete_and_strangers_stay_out(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    (tmp_path / "house").mkdir()
    house = house_in(tmp_path / "house", mark, PREFECT_SERVER_API_AUTH_STRING=AUTH)
    with database("postgres", tmp_path) as url:
        assert url
        serves(house, url.replace("postgresql+asyncpg://", "postgresql://"), tmp_path / "work")
    assert started_by(mark) == []


def serves(house: House, postgres: str, folder: Path) -> None:
    try:
        up = house.reflash("up", "--port", str(house.port), "--database", postgres)
        assert up.returncode == 0, up.stdout + up.stderr
        assert "password: PREFECT_API_AUTH_STRING" in up.stdout
        assert AUTH not in up.stdout + up.stderr
        assert (status(house, "api/flow_runs/count"), status(house, "api/health")) == (401, 200)
        run = house.start("regenerate", {"config": settings(folder, rows=5)})
        until(lambda: house.run(run)["state_type"] in ("COMPLETED", "FAILED"), LONG_S, "ended")
        assert house.run(run)["state_type"] == "COMPLETED", house.run(run)["state"]["message"]
        assert not list(house.place.rglob("*.db"))  # nothing fell back to SQLite
    finally:
        down = house.reflash("down")
    assert down.returncode == 0, down.stdout + down.stderr
