"""What is learnt of a server before it is asked anything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio

from reflash.config.engine import EndpointConfig, Patience
from reflash.engines.endpoint import base_url, open_endpoints
from reflash.engines.http import LARGEST_ANSWER, HttpEngine
from reflash.engines.open import open_engines
from reflash.errors import ConfigError, EngineAbsent, EngineBusy, EngineMisconfigured
from tests.engines.server import EngineServer, prompt, serve

MODELS = orjson.dumps({"data": [{"id": "first", "max_model_len": 4096}, {"id": "second"}]})
VLLM = {"/v1/models": MODELS, "/version": b'{"version": "0.26.0"}', "/metrics": b"vllm:num_requests_running 0\n"}
SGLANG = {
    "/v1/models": MODELS,
    "/get_server_info": orjson.dumps({"version": "0.5.17", "max_total_num_tokens": 9, "api_key": "in-clear"}),
}
LLAMACPP = {
    "/v1/models": orjson.dumps({"data": [{"id": "m.gguf", "meta": {"n_ctx": 1024}}]}),
    "/props": orjson.dumps({"default_generation_settings": {"n_ctx": 1024}, "build_info": "b11549"}),
}
QUICK = Patience(connect_s=0.5, absent_s=0.5)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EngineServer]:
    async with serve() as server:
        yield server


async def open_one(server: EngineServer, **config: object) -> HttpEngine:
    [engine] = await open_endpoints(EndpointConfig(urls=(server.url,), patience=QUICK, **config))
    assert isinstance(engine, HttpEngine)
    await engine.aclose()
    return engine


@pytest.mark.parametrize(
    ("pages", "dialect", "version", "model", "context"),
    [
        (VLLM, "vllm", "vllm 0.26.0", "first", 4096),
        (SGLANG, "sglang", "sglang 0.5.17", "first", 4096),
        (LLAMACPP, "llamacpp", "llamacpp b11549", "m.gguf", 1024),
        ({"/v1/models": MODELS, "/metrics": VLLM["/metrics"]}, "vllm", "vllm", "first", 4096),
        ({"/v1/models": MODELS, "/metrics": b"# x\n" * 10**6 + b"sglang:x 0"}, "sglang", "sglang", "first", 4096),
        ({"/v1/models": MODELS}, "chat", "", "first", 4096),
        ({"/v1/models": b'{"data": []}'}, "chat", "", "", None),
    ],
)
async def test_a_server_is_known_by_its_pages(
    server: EngineServer, pages: dict[str, bytes], dialect: str, version: str, model: str, context: int | None
) -> None:
    server.pages = pages
    engine = await open_one(server)
    assert (engine.dialect.name, engine.version, engine.model, engine.context) == (dialect, version, model, context)


async def test_what_the_config_says_goes_before_what_the_server_says(server: EngineServer) -> None:
    server.pages = VLLM
    engine = await open_one(server, dialect="chat", model="second", width=3)
    assert (engine.dialect.name, engine.model, engine.width, engine.exact) == ("chat", "second", 3, False)


@pytest.mark.parametrize("name", ["first", "FIRST", "someone/First", "/models/first/", "first/"])
async def test_a_server_that_serves_the_run_s_model_is_not_warned_of(
    server: EngineServer, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    server.pages = VLLM
    [engine] = await open_endpoints(EndpointConfig(urls=(server.url,), patience=QUICK), name)
    await engine.aclose()
    assert caplog.text == ""


@pytest.mark.parametrize(("chosen", "served"), [(None, "first"), ("second", "second")])
async def test_a_server_of_another_model_is_warned_of_once_by_both_names(
    server: EngineServer, caplog: pytest.LogCaptureFixture, chosen: str | None, served: str
) -> None:
    server.pages = VLLM
    config = EndpointConfig(urls=(server.url, server.url + "/"), model=chosen, patience=QUICK)
    for engine in await open_engines(config, context=64, log_folder=None, model="Qwen/Qwen3.6-27B"):
        await engine.aclose()
    [line] = caplog.records
    assert (line.levelname, line.name.partition(".")[0]) == ("WARNING", "reflash")
    assert served in line.getMessage()
    assert "Qwen/Qwen3.6-27B" in line.getMessage()


async def test_a_server_that_names_no_model_is_not_warned_of(
    server: EngineServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.pages = {"/v1/models": b'{"data": [{"id": {"a": 1}}]}'}
    [engine] = await open_endpoints(EndpointConfig(urls=(server.url,), patience=QUICK), "m")
    await engine.aclose()
    assert caplog.text == ""


async def test_odd_names_of_a_server_are_printable_where_people_read_them(
    server: EngineServer, caplog: pytest.LogCaptureFixture
) -> None:
    odd = "red\x1b[31m\n" * 500
    server.pages = {"/v1/models": orjson.dumps({"data": [{"id": odd}]}), "/version": orjson.dumps({"version": odd})}
    [engine] = await open_endpoints(EndpointConfig(urls=(server.url,), patience=QUICK), "m")
    await engine.aclose()
    [line] = caplog.records
    for shown in (line.getMessage(), engine.version):
        assert shown.isprintable()
        assert len(shown) < 500
    assert isinstance(engine, HttpEngine)
    assert engine.model == odd  # as the server wants it back


async def test_a_page_larger_than_any_answer_is_no_page(server: EngineServer) -> None:
    server.pages = VLLM | {"/metrics": bytes(LARGEST_ANSWER + 1)}
    with pytest.raises(EngineAbsent, match="larger than"):
        await open_one(server)


async def test_a_server_that_shows_nothing_known_is_misconfigured(server: EngineServer) -> None:
    server.pages = {"/version": b"not json", "/v1/models": b"<html>"}
    with pytest.raises(EngineMisconfigured, match=server.url):
        await open_one(server)


@pytest.mark.parametrize("pages", [{}, {"/v1/models": b"[]"}, {"/props": b"3", "/server_info": b'"x"'}])
async def test_a_dialect_that_is_named_needs_no_pages(server: EngineServer, pages: dict[str, bytes]) -> None:
    server.pages = pages
    assert (await open_one(server, dialect="sglang")).context is None


@pytest.mark.parametrize(
    ("states", "width"),
    [
        ([{"effective_max_running_requests_per_dp": 46}], 48),
        ([{"effective_max_running_requests_per_dp": 46}, {"effective_max_running_requests_per_dp": 46}], 97),
        ([{"effective_max_running_requests_per_dp": 4096}], 256),
        ([{"effective_max_running_requests_per_dp": "46"}], 256),
        ([{}], 256),
        ([3], 256),
        (None, 256),
    ],
)
async def test_the_width_is_what_sglang_really_holds(
    server: EngineServer, states: object, width: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.pages = {"/server_info": orjson.dumps({"max_total_num_tokens": 9, "internal_states": states})}
    assert (await open_one(server, width=256)).width == width
    assert ("of the 256 requests asked for" in caplog.text) == (width < 256)


async def test_a_server_that_refuses_the_key_is_misconfigured_at_once(server: EngineServer) -> None:
    server.refuses = {"": 401}
    with pytest.raises(EngineMisconfigured, match="REFLASH_API_KEY"):
        await open_one(server, api_key="sk-wrong")


async def test_the_key_comes_from_the_environment_where_the_config_has_none(
    server: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLASH_API_KEY", "sk-of-the-environment")
    server.pages = VLLM
    for config, key in [(None, "sk-of-the-environment"), ("sk-of-the-config", "sk-of-the-config")]:
        [engine] = await open_endpoints(EndpointConfig(urls=(server.url,), api_key=config, patience=QUICK))
        await engine.generate(prompt(1, 2))
        assert server.asked[-1].headers["Authorization"] == f"Bearer {key}"
        assert key not in repr(engine)
        await engine.aclose()


async def test_a_server_that_is_not_there_is_lost_by_name_within_its_patience(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    before = time.monotonic()
    with pytest.raises(EngineAbsent, match=url):
        await open_endpoints(EndpointConfig(urls=(url,), patience=QUICK))
    assert time.monotonic() - before < 2


async def test_a_proxy_that_forbids_all_other_pages_is_a_chat_server(server: EngineServer) -> None:
    server.pages = {"/v1/models": MODELS}
    server.refuses = {"/version": 403, "/props": 401, "/metrics": 500}
    assert (await open_one(server)).dialect.name == "chat"


@pytest.mark.parametrize("page", ["", "/v1/models", "/version"])
async def test_a_server_that_is_loading_is_waited_for(server: EngineServer, page: str) -> None:
    server.pages, server.refuses = VLLM, {page: 503}

    async def load() -> None:
        await asyncio.sleep(0.3)
        server.refuses = {}

    patience = Patience(connect_s=10)
    (engine, *_), _ = await asyncio.gather(
        open_endpoints(EndpointConfig(urls=(server.url,), patience=patience)), load()
    )
    assert engine.version == "vllm 0.26.0"
    await engine.aclose()


async def test_a_server_that_accepts_and_says_nothing_is_lost() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        url = "http://{}:{}".format(*silent.sockets[0].getsockname())
        with pytest.raises(EngineAbsent, match=url):
            await open_endpoints(EndpointConfig(urls=(url,), patience=QUICK))


async def test_one_dead_url_of_two_is_left_out_and_named(
    server: EngineServer, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.pages = VLLM
    dead = f"http://127.0.0.1:{unused_tcp_port}"
    [engine] = await open_endpoints(EndpointConfig(urls=(dead, server.url), patience=QUICK))
    assert engine.name == server.url
    assert f"{dead}: connect" in caplog.text
    assert "left out" in caplog.text
    await engine.aclose()


async def test_engines_come_in_the_order_of_the_urls() -> None:
    async with serve() as one, serve() as two:
        one.pages = two.pages = VLLM
        engines = await open_endpoints(EndpointConfig(urls=(two.url + "/", one.url + "/v1"), patience=QUICK))
        assert [engine.name for engine in engines] == [two.url, one.url]
        for engine in engines:
            await engine.aclose()


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host", "http://", "http://host:port", "127.0.0.1"])
def test_what_is_no_url_is_a_config_error(url: str) -> None:
    with pytest.raises(ConfigError, match=r"engine\.urls"):
        base_url(url)


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", " http://h:1/v1?x=1 "])
def test_a_base_url_ends_before_v1(url: str) -> None:
    assert base_url(url) == "http://h:1"


def test_a_base_url_keeps_the_folder_of_a_proxy() -> None:
    assert base_url("https://h/team/v1") == "https://h/team"


async def test_busy_is_not_lost_when_the_server_goes_on_loading(server: EngineServer) -> None:
    server.refuses = {"": 503}
    with pytest.raises((EngineBusy, EngineAbsent), match=server.url):
        await open_one(server)
