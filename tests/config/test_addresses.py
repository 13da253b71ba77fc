"""Where a run lies and what it reads stand in the manifest, in Prefect's records and in logs: no key may."""

from __future__ import annotations

import traceback

import pytest
from pydantic import ValidationError

from reflash.config.load import parse_config
from reflash.config.source import SourceConfig
from reflash.errors import ConfigError

SETTINGS = {"run": "runs/a", "source": {"path": "a.jsonl"}, "model": {"name": "m"}, "engine": {"kind": "scripted"}}
WITH_A_KEY = (
    "s3://key:planted-secret@host/bucket",
    "s3://key:planted/secret@host/bucket",
    "s3://planted-secret@bucket/run",
    "S3://key:planted+secret@bucket",
    "https://user:planted-secret@host:9000/bucket",
    "abfss://container:planted-secret@account.dfs.core.windows.net/x",
)
FINE = (
    "runs/a",
    "/data/me@home/run",
    "C:/run",
    "s3://bucket/run",
    "s3://bucket/me@home/run",
    "https://host:9000/bucket",
    "http://[::1]:9000/bucket",
    "gs://bucket",
    "abfss://container@account.dfs.core.windows.net/run",
    "file:///data/what?",
    "pkg://package/file.jsonl",
    "memory://",
)


def refusal(**changed: object) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config({**SETTINGS, **changed}, "a.yaml")
    assert "planted" not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@pytest.mark.parametrize("url", WITH_A_KEY)
def test_a_key_in_the_url_of_a_run_or_a_source_is_refused_and_not_repeated(url: str) -> None:
    assert "AWS_SECRET_ACCESS_KEY" in refusal(run=url)
    assert "environment variables" in refusal(source={"path": url})
    with pytest.raises(ValidationError) as raw:
        SourceConfig(path=url)
    assert "planted" not in str(raw.value) + repr(raw.value)


@pytest.mark.parametrize("url", ["az://container/run?sig=planted-secret", "s3://bucket#planted-secret"])
def test_a_query_in_the_url_of_a_run_is_refused_and_not_repeated(url: str) -> None:
    assert "query" in refusal(run=url)


@pytest.mark.parametrize("url", FINE)
def test_paths_and_urls_without_a_user_stay_as_they_are(url: str) -> None:
    config = parse_config({**SETTINGS, "run": url, "source": {"path": url}}, "a.yaml")
    assert (config.run, config.source.path) == (url, url)


def test_a_source_may_be_a_pattern() -> None:
    assert SourceConfig(path="s3://bucket/part-?.jsonl").path == "s3://bucket/part-?.jsonl"
