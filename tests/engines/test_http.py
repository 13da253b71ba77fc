"""What a server may do wrong, and the error that each fault becomes, in every dialect."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import pytest_asyncio

from reflash.config.engine import Patience
from reflash.engines.dialects.registry import DIALECTS
from reflash.engines.http import LARGEST_ANSWER, HttpEngine
from reflash.errors import (
    EngineAbsent,
    EngineBusy,
    EngineError,
    EngineGarbage,
    EngineLost,
    EngineMisconfigured,
    EngineRefused,
)
from tests.engines import server as srv
from tests.engines.server import PATHS, EngineServer, prompt, said, serve

KEY = "sk-very-secret"
EXACT = ["vllm", "sglang", "llamacpp"]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EngineServer]:
    async with serve() as server:
        yield server


@pytest_asyncio.fixture(params=PATHS)
async def engine(request: pytest.FixtureRequest, server: EngineServer) -> AsyncIterator[HttpEngine]:
    patience = Patience(connect_s=5, request_s=5)
    engine = HttpEngine(server.url, DIALECTS[request.param], model="m", patience=patience, api_key=KEY)
    yield engine
    await engine.aclose()


exact_only = pytest.mark.parametrize("engine", EXACT, indirect=True)
chat_only = pytest.mark.parametrize("engine", ["chat"], indirect=True)


def good(engine: HttpEngine) -> dict[str, Any]:
    return said(engine.dialect.name, [5, 6, 2])


async def fault(engine: HttpEngine) -> EngineError:
    with pytest.raises(EngineError) as caught:
        await engine.generate(prompt(1, 2, 3))
    return caught.value


@exact_only
async def test_the_ids_that_go_in_are_the_ids_that_come_out(engine: HttpEngine) -> None:
    ids = tuple(range(100, 5000))
    answer = await engine.generate(prompt(*ids, budget=10_000))
    assert answer.tokens == ids
    assert answer.completion_tokens == answer.prompt_tokens == len(ids)


@chat_only
async def test_a_chat_server_is_sent_messages_and_its_text_comes_out(engine: HttpEngine) -> None:
    answer = await engine.generate(prompt(7, 8, 9))
    assert (answer.content, answer.tokens, answer.exact) == ("7 8 9", (), False)


async def test_the_seed_and_the_sampling_are_sent(engine: HttpEngine, server: EngineServer) -> None:
    await engine.generate(prompt(1, 2, seed=1234, temperature=0.6, top_p=0.9, top_k=5))
    sent = server.asked[-1].body.get("sampling_params", server.asked[-1].body)
    assert sent.get("seed", sent.get("sampling_seed")) == 1234
    assert (sent["temperature"], sent["top_p"], sent["top_k"]) == (0.6, 0.9, 5)


async def test_the_key_goes_in_a_header_and_no_cookie_comes_back(engine: HttpEngine, server: EngineServer) -> None:
    server.answer = srv.json(good(engine), headers={"Set-Cookie": "a=b; Path=/"})
    for _ in range(2):
        await engine.generate(prompt(1, 2))
    assert server.asked[-1].headers["Authorization"] == f"Bearer {KEY}"
    assert "Cookie" not in server.asked[-1].headers


async def test_one_connection_serves_one_request_after_another(engine: HttpEngine, server: EngineServer) -> None:
    peers = set()

    async def answer(request: Any, asked: srv.Asked) -> Any:
        peers.add(request.transport.get_extra_info("peername"))
        return await srv.echo(request, asked)

    server.answer = answer
    for _ in range(5):
        await engine.generate(prompt(1, 2))
    assert len(peers) == 1


async def test_a_cancelled_request_closes_its_connection(engine: HttpEngine, server: EngineServer) -> None:
    server.answer = srv.hang
    task = asyncio.create_task(engine.generate(prompt(1, 2)))
    async with asyncio.timeout(5):
        await server.got_one.wait()
        task.cancel()
        await server.cut_one.wait()
    assert task.cancelled()


async def test_an_engine_that_is_not_there_is_absent(engine: HttpEngine, unused_tcp_port: int) -> None:
    dead = HttpEngine(f"http://127.0.0.1:{unused_tcp_port}", engine.dialect)
    assert isinstance(error := await fault(dead), EngineAbsent)
    assert str(unused_tcp_port) in str(error)
    await dead.aclose()


async def test_a_connection_cut_in_mid_body_is_lost(engine: HttpEngine, server: EngineServer) -> None:
    server.answer = srv.reset_in_mid_body
    assert isinstance(await fault(engine), EngineLost)


async def test_an_engine_closed_under_a_request_loses_it(engine: HttpEngine, server: EngineServer) -> None:
    server.answer = srv.hang
    task = asyncio.create_task(fault(engine))
    await server.got_one.wait()
    await engine.aclose()
    assert isinstance(await task, EngineLost)


async def test_an_answer_that_does_not_come_is_lost_after_its_time(engine: HttpEngine, server: EngineServer) -> None:
    server.answer = srv.hang
    hasty = HttpEngine(server.url, engine.dialect, patience=Patience(request_s=0.2))
    assert isinstance(error := await fault(hasty), EngineLost)
    assert "0.2 s" in str(error)
    await hasty.aclose()


async def test_a_slow_answer_within_its_time_is_an_answer(engine: HttpEngine, server: EngineServer) -> None:
    async def answer(request: Any, asked: srv.Asked) -> Any:
        await asyncio.sleep(0.2)
        return await srv.echo(request, asked)

    server.answer = answer
    completion = await engine.generate(prompt(1, 2))
    assert completion.seconds >= 0.2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, EngineRefused),
        (413, EngineRefused),
        (422, EngineRefused),
        (401, EngineMisconfigured),
        (403, EngineMisconfigured),
        (404, EngineMisconfigured),
        (405, EngineMisconfigured),
        (408, EngineBusy),
        (429, EngineBusy),
        (503, EngineBusy),
        (500, EngineLost),
        (502, EngineBusy),
        (504, EngineBusy),
        (204, EngineGarbage),
    ],
)
async def test_each_status_has_its_error(
    engine: HttpEngine, server: EngineServer, status: int, kind: type[EngineError]
) -> None:
    server.answer = srv.json({"error": {"message": "because of this", "code": status}}, status)
    error = await fault(engine)
    assert type(error) is kind
    assert str(status) in str(error)
    assert status == 204 or "because of this" in str(error)


async def test_a_server_says_when_to_come_back(engine: HttpEngine, server: EngineServer) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    for header, low, high in [
        ("7", 7, 7),
        ("0.5", 0.5, 0.5),
        (later, 50, 60),
        ("nan", 0, 0),
        ("-3", 0, 0),
        ("x", 0, 0),
    ]:
        server.answer = srv.json({}, 429, {"Retry-After": header})
        error = await fault(engine)
        assert isinstance(error, EngineBusy)
        assert low <= error.retry_after <= high, header


async def test_a_redirect_is_not_followed(engine: HttpEngine, server: EngineServer) -> None:
    server.answer = srv.json({}, 307, {"Location": server.url + engine.dialect.path})
    assert isinstance(await fault(engine), EngineMisconfigured)
    assert len(server.asked) == 1


async def test_a_long_complaint_is_cut(engine: HttpEngine, server: EngineServer) -> None:
    server.answer = srv.always(b"<html>" + b"x" * 100_000, 500)
    assert len(str(await fault(engine))) < 400


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"message": "too long", "code": 400}}, EngineRefused),
        ({"error": {"message": "loading", "code": 503}}, EngineBusy),
        ({"object": "error", "message": "dead", "code": 500}, EngineLost),
        ({"error": "something"}, EngineGarbage),
        ({"error": {"message": "odd", "code": "rate_limited"}}, EngineGarbage),
    ],
)
async def test_an_error_in_a_200_is_an_error(
    engine: HttpEngine, server: EngineServer, body: dict[str, Any], kind: type[EngineError]
) -> None:
    server.answer = srv.json(body)
    assert type(await fault(engine)) is kind


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"12", b"{}", b"\xff\xfe", b"<html>", b'{"choices": [{"inde'])
async def test_an_answer_that_is_no_answer_is_garbage(engine: HttpEngine, server: EngineServer, raw: bytes) -> None:
    server.answer = srv.always(raw)
    assert isinstance(await fault(engine), EngineGarbage)


async def test_every_truncation_of_a_good_answer_is_garbage(engine: HttpEngine, server: EngineServer) -> None:
    raw = srv.orjson.dumps(good(engine))
    for end in range(0, len(raw), 7):
        server.answer = srv.always(raw[:end])
        assert isinstance(await fault(engine), EngineGarbage)


async def test_a_giant_answer_is_garbage_before_it_fills_the_memory(engine: HttpEngine, server: EngineServer) -> None:
    for answer in (srv.endless, srv.json({}, headers={"Content-Length": str(LARGEST_ANSWER + 1)})):
        server.answer = answer
        assert isinstance(await fault(engine), EngineGarbage)


async def test_a_compressed_answer_is_read(engine: HttpEngine, server: EngineServer) -> None:
    async def answer(request: Any, asked: srv.Asked) -> Any:
        response = await srv.echo(request, asked)
        response.enable_compression()
        return response

    server.answer = answer
    assert (await engine.generate(prompt(*range(10, 2000), budget=2000))).prompt_tokens == 1990


@pytest.mark.parametrize("status", [200, 400, 401, 500])
async def test_the_key_is_in_no_error_and_no_repr(engine: HttpEngine, server: EngineServer, status: int) -> None:
    server.answer = srv.json({"error": {"message": f"bad key {KEY}"}}, status)
    errors = [await fault(engine)]
    server.answer = srv.reset_in_mid_body
    errors.append(await fault(engine))
    for error in errors:
        chain = [error, error.__cause__, error.__context__]
        shown = "".join(map(repr, chain)) + "".join(traceback.format_exception(error)) + repr(engine)
        assert KEY not in shown


async def test_half_a_key_is_in_no_error_either(engine: HttpEngine, server: EngineServer) -> None:
    for before in range(280, 300):
        server.answer = srv.json({"error": {"message": "x" * before + KEY}}, 400)
        assert KEY[:4] not in str(await fault(engine))


def bodies_that_cut(key: str, before: int) -> list[Any]:
    """Answers whose words, cut to what is kept, end within the key."""
    said_so = "x" * before + key
    return [
        {"error": {"message": said_so}},
        {"error": {"message": said_so, "code": 400}},
        {"error": said_so, "object": "error"},
        {"choices": [{"finish_reason": said_so, "message": {}}], "usage": {}},
        {"stop_type": said_so, "tokens": [5], "tokens_predicted": 1, "tokens_evaluated": 3},
        {"meta_info": {"finish_reason": {"type": said_so}, "completion_tokens": 1}, "output_ids": [5]},
        {"meta_info": {"finish_reason": {"type": "abort", "message": said_so, "status_code": 400}}},
        {said_so: 1, "choices": [{said_so: 1}]},
    ]


@pytest.mark.parametrize("before", [58, 62, 72, 76, 282, 285, 290, 296])
async def test_no_part_of_a_key_is_in_the_error_of_a_200(engine: HttpEngine, server: EngineServer, before: int) -> None:
    for body in bodies_that_cut(KEY, before):
        server.answer = srv.json(body)
        assert KEY[:4] not in str(await fault(engine)), body
    server.answer = srv.always(b"x" * before + KEY.encode())
    assert KEY[:4] not in str(await fault(engine))


@pytest.mark.parametrize("key", ['a/b"c-very-secret', "schlüssel/geheim"])
@pytest.mark.parametrize("before", [287, 292])
async def test_a_key_that_json_spells_otherwise_is_in_no_error(server: EngineServer, key: str, before: int) -> None:
    engine = HttpEngine(server.url, DIALECTS["vllm"], model="m", api_key="x")
    engine._api_key = key  # a header takes no such letters
    for ascii_only, slash in ((True, "/"), (False, "/"), (True, "\\/")):
        body = json.dumps({"error": {"message": "x" * before + key}}, ensure_ascii=ascii_only).replace("/", slash)
        for status in (200, 400):
            server.answer = srv.always(body.encode(), status)
            assert key[:5] not in str(await fault(engine))
    await engine.aclose()


async def test_a_key_that_is_a_common_word_changes_no_good_answer_and_no_kind_of_error(server: EngineServer) -> None:
    engine = HttpEngine(server.url, DIALECTS["vllm"], model="m", api_key="token_ids")
    server.answer = srv.json(said("vllm", [5, 6, 2]))
    assert (await engine.generate(prompt(1, 2, 3))).tokens == (5, 6, 2)
    server.answer = srv.json({"error": {"message": "no token_ids", "code": 400}})
    refused = await fault(engine)
    assert isinstance(refused, EngineRefused)
    assert "***" in str(refused)
    await engine.aclose()


@pytest.mark.parametrize("status", [200, 400, 429, 500])
async def test_what_a_server_says_does_nothing_to_a_terminal(
    engine: HttpEngine, server: EngineServer, status: int
) -> None:
    for body in ({"error": {"message": "\x1b[31mred\n\u202e\x00", "code": 500}}, {"error": "\x07" * 5000}):
        server.answer = srv.json(body, status)
        assert str(await fault(engine)).isprintable()


async def test_a_password_in_the_url_is_not_in_its_name(server: EngineServer) -> None:
    engine = HttpEngine(server.url.replace("//", "//user:hidden@"), DIALECTS["vllm"])
    assert engine.name == server.url
    assert "hidden" not in repr(engine)
    await engine.aclose()
