"""Blocks: what they turn into, what they refuse by field, what they keep secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from reflash.errors import ConfigError

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def engine(**given: Any) -> Any:
    from blocks.engine import Engine

    return Engine(engine=given)


def store(**given: Any) -> Any:
    from blocks.store import Store

    return Store(**{"secret": SecretStr("s3cr3t"), **given})


def hub(**given: Any) -> Any:
    from blocks.hub import HubToken

    return HubToken(**given)


def test_a_saved_engine_is_plain_config() -> None:
    from reflash.config.engine import EndpointConfig

    found = engine(kind="endpoint", urls=["http://127.0.0.1:8000"], api_key="s3cr3t").config()
    assert isinstance(found, EndpointConfig)
    assert found.api_key
    assert found.api_key.get_secret_value() == "s3cr3t"


def test_a_store_is_what_object_stores_read() -> None:
    assert store(kind="s3", account="me", endpoint="http://10.0.0.5:9000").environment() == {
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "s3cr3t",
        "AWS_ENDPOINT_URL": "http://10.0.0.5:9000",
        "AWS_ALLOW_HTTP": "true",
    }
    assert store(kind="az", account="me").environment()["AZURE_STORAGE_ACCOUNT_NAME"] == "me"
    assert store(kind="gs").environment() == {"GOOGLE_SERVICE_ACCOUNT_KEY": "s3cr3t"}


def test_a_token_is_what_the_hub_reads() -> None:
    assert hub(token="hf_s3cr3t").environment() == {"HF_TOKEN": "hf_s3cr3t"}


WRONG: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (engine, {"kind": "endpoint", "urls": []}, "urls"),
    (engine, {"kind": "endpoint", "urls": ["http://me:s3cr3t@host"]}, "urls"),
    (engine, {"kind": "vllm", "model": "m", "tp": 0}, "tp"),
    (engine, {"kind": "nothing"}, "kind"),
    (store, {"kind": "ftp"}, "kind"),
    (store, {"kind": "s3", "endpoint": "http://me:s3cr3t@host"}, "endpoint"),
    (hub, {"token": ""}, "token"),
]


@pytest.mark.parametrize(("make", "given", "field"), WRONG)
def test_a_bad_block_names_its_field_and_repeats_no_secret(make: Callable[..., Any], given: Any, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        make(**given)
    assert field in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_a_bad_block_that_was_saved_names_each_field() -> None:
    from blocks.engine import Engine
    from blocks.store import Store

    with pytest.raises(ConfigError) as caught:
        Store.model_validate({"endpoint": "s3cr3t", "account": "me"})
    told = str(caught.value)
    assert told.startswith("block Reflash Store: ")
    assert all(field in told for field in ("kind: is missing", "secret: is missing", "endpoint:"))
    assert "s3cr3t" not in told
    with pytest.raises(ConfigError, match=r"engine\.tp: must be at least 1"):
        Engine.model_validate({"engine": {"kind": "vllm", "model": "m", "tp": 0}})


@pytest.mark.parametrize(
    "made",
    [
        lambda: engine(kind="endpoint", urls=["http://h"], api_key="s3cr3t"),
        lambda: store(kind="s3"),
        lambda: hub(token="s3cr3t"),
    ],
)
def test_a_secret_is_not_shown(made: Callable[[], Any]) -> None:
    assert "s3cr3t" not in repr(made())
    assert "s3cr3t" not in made().model_dump_json()


MAIL = "mailto://me:k3y@127.0.0.1?from=me@example.org&to=you@example.org"


@pytest.mark.parametrize("url", ["https://example.org/hook?key=k3y", MAIL])
def test_an_alert_keeps_its_address_secret(url: str) -> None:
    from blocks.alert import alert

    assert "k3y" not in repr(alert(url))


@pytest.mark.parametrize("url", ["nowhere", "ftp://example.org", "mailto://", ""])
def test_an_alert_takes_no_address_that_nothing_can_be_sent_to(url: str) -> None:
    from blocks.alert import alert

    with pytest.raises(ValueError, match="URL"):
        alert(url)
