"""A run's dataset pushed to the Hub: private, whole, gone on with after a break, and the token told to nobody."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import datasets
import pyarrow.parquet as pq
import pytest
import yaml

from flows.validating import validate_run
from reflash.errors import RunIncomplete, StoreError
from reflash.ledger import names
from reflash.ledger.dataset import Dataset
from reflash.ledger.ledger import open_ledger
from reflash.push.hub import push_run
from reflash.push.staged import staged
from tests.flows.made import made_run, settings
from tests.push.upload_hub import TOKEN, Kept, serving


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pushed")
    made_run(settings(folder))
    return folder / "run"


@pytest.fixture
def hub() -> Iterator[tuple[Kept, str]]:
    with serving() as served:
        yield served


def push(
    run: Path, url: str, *more: str, repo: str = "own/set", token: str = TOKEN
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: the Hub's client reads the address when it is imported."""
    told = {"HF_ENDPOINT": url, "HF_TOKEN": token, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = Path(sys.executable).with_name("reflash")
    done = subprocess.run(
        [command, "push", run, repo, *more], env=os.environ | told, capture_output=True, text=True, timeout=120
    )
    assert token not in done.stdout + done.stderr
    return done


def test_a_run_is_pushed_whole_and_private_and_again_sends_nothing(run: Path, hub: tuple[Kept, str]) -> None:
    kept, url = hub
    done = push(run, url)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"5 rows in 3 files are at {url}/datasets/own/set (only you and your organization see it)\n"
    files = kept.sets["own/set"]
    assert kept.private["own/set"] is True
    rows = [row for name in sorted(files) if name.startswith("data/") for row in rows_of(files[name])]
    ledger = open_ledger(str(run))
    assert rows == [row for name in ledger.dataset_files() for row in ledger.dataset_rows(name).to_pylist()]
    assert files["charts/lengths.png"].startswith(b"\x89PNG")
    assert "](charts/lengths.png)" in files["README.md"].decode()
    stored = kept.stored
    assert push(run, url).returncode == 0
    assert kept.stored == stored == 3


def rows_of(raw: bytes) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(io.BytesIO(raw)).to_pylist()
    return rows


def test_what_goes_up_is_read_as_one_set_and_its_card_as_written(run: Path, tmp_path: Path) -> None:
    ledger = open_ledger(str(run))
    with staged(Dataset(ledger)) as folder:
        loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path))
        front, body = (folder / "README.md").read_text().removeprefix("---\n").split("\n---\n", 1)
    assert list(loaded) == ["train"]
    assert loaded["train"].num_rows == 5
    assert yaml.safe_load(front)["tags"][0] == "reflash"
    card = ledger.card()
    assert card is not None
    assert body.startswith(card.split("\n---\n", 1)[1].rstrip())


@pytest.mark.slow
def test_a_push_that_breaks_off_says_so_and_the_next_sends_the_rest(run: Path, hub: tuple[Kept, str]) -> None:
    kept, url = hub
    kept.breaks_after = 1
    done = push(run, url)
    assert done.returncode == 1
    assert "the upload broke off" in done.stderr
    assert "the same command goes on with it" in done.stderr
    assert "README.md" not in kept.sets["own/set"]
    kept.breaks_after = None
    assert push(run, url).returncode == 0
    assert kept.stored == 3
    assert len([name for name in kept.sets["own/set"] if name.startswith("data/")]) == 3


@pytest.mark.slow
def test_nothing_becomes_public_unasked(run: Path, hub: tuple[Kept, str]) -> None:
    kept, url = hub
    kept.sets["own/set"], kept.private["own/set"] = {}, False
    done = push(run, url)
    assert done.returncode == 2
    assert "is public already" in done.stderr
    assert not kept.sets["own/set"]
    assert "(public)" in push(run, url, "--public").stdout


@pytest.mark.slow
def test_a_set_with_data_of_somebody_else_is_left_alone(run: Path, hub: tuple[Kept, str]) -> None:
    kept, url = hub
    kept.sets["own/set"], kept.private["own/set"] = {"data/mine.parquet": b"", "README.md": b"mine"}, True
    done = push(run, url)
    assert done.returncode == 2
    assert "data/mine.parquet" in done.stderr
    assert kept.sets["own/set"] == {"data/mine.parquet": b"", "README.md": b"mine"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("repo", "token", "said"),
    [("own/set", "hf_wrong", "HF_TOKEN to a token that may write"), ("a/b/c", TOKEN, "a/b/c")],
)
def test_a_wrong_token_and_a_wrong_name_are_told_with_a_remedy(
    run: Path, hub: tuple[Kept, str], repo: str, token: str, said: str
) -> None:
    done = push(run, hub[1], repo=repo, token=token)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_with_missing_rows_is_pushed_only_when_that_is_said(tmp_path: Path) -> None:
    made_run(settings(tmp_path), shards_wanted=1)
    with pytest.raises(RunIncomplete, match="reflash"):
        push_run(str(tmp_path / "run"), "own/set")


class Odd(BaseHTTPRequestHandler):
    """A server that is no Hub: a page for an answer, a list, nothing, a way to nowhere."""

    does = ""

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        if self.does == "hangs up":
            self.connection.close()
            return
        self.send_response(307 if self.does == "leads nowhere" else 200)
        body = b"<html>\x1b[31m" if self.does == "shows a page" else b"[]"
        self.send_header("Location", "http://127.0.0.1:9/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def odd(does: str) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Does", (Odd,), {"does": does}))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("does", ["shows a page", "answers a list", "hangs up", "leads nowhere"])
def test_a_server_that_is_no_hub_is_one_clear_error(run: Path, does: str) -> None:
    with odd(does) as url:
        done = push(run, url)
    assert done.returncode == 1
    assert done.stderr.startswith("reflash: own/set: the upload broke off (")
    assert (done.stderr.count("\n"), "\x1b" in done.stderr) == (1, False)


def test_a_hub_that_cannot_be_reached_is_one_clear_error(run: Path) -> None:
    done = push(run, "http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stderr.startswith("reflash: own/set: the upload broke off (")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("report", [b'{"turns": "x"}', b'{"complete": true}', b'{"complete": true, "total": 3}', None])
def test_a_report_that_is_gone_or_damaged_is_written_by_validating(tmp_path: Path, report: bytes | None) -> None:
    ledger = made_run(settings(tmp_path, 3))
    ledger.store.delete(["report.json"])
    if report is not None:
        ledger.store.put("report.json", report)
    with pytest.raises(RunIncomplete, match=r"has (no|a damaged) report.*`reflash validate"):
        push_run(ledger.where, "own/set")
    validate_run(ledger.where)
    with staged(Dataset(ledger)) as folder:
        assert len(list((folder / "data").iterdir())) == 2


def test_files_that_hold_other_rows_than_were_judged_good_are_not_pushed(tmp_path: Path) -> None:
    ledger = made_run(settings(tmp_path, 3))
    whole = ledger.store.get(names.dataset("00000"))
    assert whole
    for name in (names.dataset("00001"), names.dataset("00002")):
        ledger.store.put(name, whole)
        with pytest.raises(StoreError, match=name), staged(Dataset(ledger)):
            pass
        ledger.store.delete([name])
        validate_run(ledger.where)
