"""The parts of a house, without a server: settings, processes known by pid and start, the keeper, systemd units."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flows.house import processes, settings, systemd
from flows.house.keep import Job, jobs_of, start_due
from flows.house.place import Place, place, read_env
from flows.house.processes import Known
from flows.house.settings import House
from flows.house.up import Wish, down, up, wanted
from reflash.errors import ConfigError

HOUSE = House("127.0.0.1", 4200, "/srv/my set")
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(SLEEP)
    yield process
    process.kill()
    process.wait()


def test_on_loopback_there_is_no_password_and_elsewhere_there_is_one() -> None:
    assert wanted(Wish(), None).auth == ""
    assert wanted(Wish(host="localhost"), None).auth == ""
    made = wanted(Wish(host="0.0.0.0"), None)
    assert len(made.auth.removeprefix("reflash:")) > 20
    assert wanted(Wish(), made).auth == made.auth
    assert wanted(Wish(host="gpu-box"), None).auth
    assert wanted(Wish(host="0.0.0.0", open_door=True), None).auth == ""


def test_the_users_own_password_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "me:mine")
    assert wanted(Wish(), None).auth == "me:mine"


def test_a_server_that_others_keep_is_used_and_ones_own_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://10.0.0.7:4200/api")
    assert wanted(Wish(), None).url == "http://10.0.0.7:4200"
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    assert wanted(Wish(), None).server == ""


@pytest.mark.parametrize("given", ["postgresql://u:p@h/d", "postgres://u:p@h/d", "postgresql+asyncpg://u:p@h/d"])
def test_a_postgresql_url_is_written_as_prefect_wants_it(given: str) -> None:
    assert settings.async_url(given) == "postgresql+asyncpg://u:p@h/d"


def test_another_database_is_refused_without_repeating_its_password() -> None:
    with pytest.raises(ConfigError, match="postgresql://USER:PASSWORD@HOST") as caught:
        settings.async_url("mysql://u:secret@h/d")
    assert "secret" not in str(caught.value)


def test_what_a_house_keeps_is_for_its_owner_alone(tmp_path: Path) -> None:
    where, house = Place(tmp_path / "house"), replace(HOUSE, auth="reflash:pass=word")
    settings.write(house, where)
    assert settings.read(where) == house
    assert read_env(where.client_env)["PREFECT_API_AUTH_STRING"] == "reflash:pass=word"
    assert read_env(where.server_env)["PREFECT_SERVER_API_AUTH_STRING"] == "reflash:pass=word"
    for file in (where.house, where.client_env, where.server_env):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(where.folder.stat().st_mode) == 0o700


def test_a_process_is_known_by_its_start_too(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    one = processes.known(child.pid)
    assert one is not None
    other = Known(one.pid, one.started + 1)  # the pid was given to another one meanwhile
    processes.write(tmp_path / "p.json", {"this": one, "other": other})
    assert processes.read(tmp_path / "p.json") == {"this": one}
    assert processes.end_all([other], 0.1) == []
    assert one.alive


def test_what_does_not_end_by_itself_is_killed() -> None:
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    one = processes.known(process.pid)
    assert one
    assert processes.end_all([one], 0.2) == []
    assert process.wait(5) < 0
    process.stdout.close()


def test_down_without_a_house_says_so() -> None:
    said: list[str] = []
    down(said.append)
    assert said == ["nothing of a house runs"]


def test_down_ends_what_a_killed_keeper_has_left(child: subprocess.Popen[bytes]) -> None:
    where, one = place(), processes.known(child.pid)
    assert one
    where.make()
    processes.write(where.processes, {"keeper": Known(2**22 + 1, 1), "server": one})
    down(lambda _: None)
    assert not one.alive
    assert not where.processes.exists()


def test_a_standing_house_is_not_taken_for_another_one(child: subprocess.Popen[bytes]) -> None:
    where, one = place(), processes.known(child.pid)
    assert one
    settings.write(wanted(Wish(), None), where)
    processes.write(where.processes, {"keeper": one})
    with pytest.raises(ConfigError, match="another port; `reflash down` ends it first"):
        up(Wish(port=4999), lambda _: None)


def job(tmp_path: Path, code: str) -> Job:
    return Job("server", [sys.executable, "-c", code], {}, str(tmp_path), tmp_path / "server.log")


def test_a_job_that_ends_is_started_again_later_each_time(tmp_path: Path) -> None:
    one = job(tmp_path, "pass")
    assert one.due(0.0)
    one.start()
    assert one.process
    one.process.wait()
    ended = time.monotonic()
    assert not one.due(ended)  # two seconds later
    assert one.due(ended + 2.0)
    assert one.failures == 1


def test_what_a_killed_keeper_left_is_not_started_twice_and_is_started_again_when_it_ends(
    child: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    where, left = place(), processes.known(child.pid)
    assert left
    where.make()
    processes.write(where.processes, {"keeper": Known(2**22 + 1, 1), "server": left})
    server, worker = jobs_of(HOUSE, where, ["server", "worker"])
    assert (server.one, worker.one) == (left, None)
    assert not server.due(0.0)
    child.kill()
    child.wait()
    assert server.due(0.0)


def test_a_house_whose_keeper_was_killed_is_still_not_taken_for_another_one(child: subprocess.Popen[bytes]) -> None:
    where, left = place(), processes.known(child.pid)
    assert left
    settings.write(wanted(Wish(), None), where)
    processes.write(where.processes, {"keeper": Known(2**22 + 1, 1), "server": left})
    with pytest.raises(ConfigError, match="another port; `reflash down` ends it first"):
        up(Wish(port=4999), lambda _: None)
    assert left.alive


KEEPING = """
import sys, threading
from pathlib import Path
from flows.house.keep import Job, keep
folder, stop = Path(sys.argv[1]), threading.Event()
job = Job("server", [sys.executable, "-c", sys.argv[2]], {}, str(folder), folder / "server.log")
threading.Timer(1.5, stop.set).start()
keep([job], "http://127.0.0.1:1", folder / "p.json", stop)
"""
SPAWNING = "import subprocess, time; subprocess.Popen(['sleep', '60'], start_new_session=True); time.sleep(60)"


def test_a_keeper_told_to_end_leaves_nothing_not_even_a_childs_child_in_a_session_of_its_own(tmp_path: Path) -> None:
    env = {**os.environ, "REFLASH_TEST_MARK": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-c", KEEPING, str(tmp_path), SPAWNING],
        env=env,
        check=True,
        timeout=30,
        cwd=Path(__file__).parents[2],
    )
    assert (tmp_path / "server.log").exists()
    assert not (tmp_path / "p.json").exists()
    assert [p for p in Path("/proc").glob("[0-9]*") if mark_of(p) == str(tmp_path)] == []


def mark_of(process: Path) -> str:
    try:
        found = dict(line.partition("=")[::2] for line in (process / "environ").read_text().split("\0"))
    except OSError:
        return ""
    return found.get("REFLASH_TEST_MARK", "")


def test_units_are_such_that_systemd_takes_them(tmp_path: Path) -> None:
    where = Place(tmp_path / "state" / "reflash" / "house")
    folder = tmp_path / "my set"
    folder.mkdir()
    house = replace(HOUSE, folder=str(folder))
    settings.write(house, where)
    said = list(systemd.write(house, where))
    assert systemd.written()
    assert "systemctl --user" in "\n".join(said)
    text = (systemd.folder() / "reflash-worker.service").read_text()
    assert f"EnvironmentFile={where.client_env}" in text
    assert "Restart=always" in text
    assert f"{sys.executable} -m prefect worker start --pool reflash" in text


def test_systemd_itself_finds_no_fault_in_the_units(tmp_path: Path) -> None:
    from shutil import which

    if which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    where = Place(tmp_path / "house")
    house = replace(HOUSE, folder=str(tmp_path))
    settings.write(house, where)
    list(systemd.write(house, where))
    units = [str(systemd.folder() / f"{name}.service") for name in systemd.UNITS]
    done = subprocess.run(["systemd-analyze", "verify", "--user", *units], capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if "reflash-" in line], done.stderr


def test_the_worker_is_not_started_before_the_server_answers(tmp_path: Path) -> None:
    worker = replace(job(tmp_path, "pass"), name="worker")
    start_due([worker], "http://127.0.0.1:1")
    assert worker.process is None
