"""A small server on loopback that speaks all four dialects, answers with the ids it was sent, and can misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from reflash.types import Message, Prompt, Sampling

PATHS = {
    "vllm": "/v1/completions",
    "sglang": "/generate",
    "llamacpp": "/completion",
    "chat": "/v1/chat/completions",
}
Answer = Callable[[web.Request, "Asked"], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    dialect: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def ids(self) -> list[int]:
        return self.body.get("prompt") or self.body.get("input_ids") or []

    @property
    def budget(self) -> int:
        sampling = self.body.get("sampling_params", self.body)
        return sampling.get("max_tokens") or sampling.get("max_new_tokens") or sampling["n_predict"]


@dataclass
class EngineServer:
    """What it was asked, and how it answers."""

    url: str
    answer: Answer
    asked: list[Asked] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)  # paths that were got
    pages: dict[str, bytes] = field(default_factory=dict)  # what GET answers, by path; 404 where it is not here
    refuses: dict[str, int] = field(default_factory=dict)  # the status of a GET, by path; "" for every path
    got_one: asyncio.Event = field(default_factory=asyncio.Event)  # a request came in
    cut_one: asyncio.Event = field(default_factory=asyncio.Event)  # a client closed its connection before the answer


def prompt(*ids: int, budget: int = 64, seed: int | None = 7, **sampling: Any) -> Prompt:
    """A prompt of these ids whose message is the ids as text."""
    return Prompt(
        conversation="c1",
        turn=0,
        tokens=ids,
        max_new_tokens=budget,
        sampling=Sampling(seed=seed, **sampling),
        stop_ids=(2,),
        messages=(Message("user", " ".join(map(str, ids))),),
    )


def said(dialect: str, ids: list[int], *, cut: bool = False, prompt_tokens: int = 3) -> dict[str, Any]:
    """A good answer of these ids in a dialect's own shape; chat answers with the ids as text."""
    end, n = ("length" if cut else "stop"), len(ids)
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": n, "total_tokens": prompt_tokens + n}
    text = " ".join(map(str, ids))
    if dialect == "vllm":
        choice = {"index": 0, "text": text, "finish_reason": end, "token_ids": ids}
        return {"object": "text_completion", "choices": [choice], "usage": usage}
    if dialect == "sglang":
        reason = {"type": "length", "length": n} if cut else {"type": "stop", "matched": ids[-1]}
        meta = {"finish_reason": reason, "prompt_tokens": prompt_tokens, "completion_tokens": n}
        return {"text": text, "output_ids": ids, "meta_info": meta}
    if dialect == "llamacpp":
        stop_type = "limit" if cut else "eos"
        return {
            "content": text,
            "tokens": ids,
            "stop_type": stop_type,
            "tokens_predicted": n,
            "tokens_evaluated": prompt_tokens,
        }
    message = {"role": "assistant", "content": text, "tool_calls": []}
    return {"choices": [{"index": 0, "message": message, "finish_reason": end}], "usage": usage}


async def echo(request: web.Request, asked: Asked) -> web.StreamResponse:
    """Answer with the ids that were sent, cut to the budget."""
    ids = asked.ids or [int(word) for word in asked.body["messages"][-1]["content"].split()]
    kept = ids[: asked.budget]
    return web.json_response(said(asked.dialect, kept, cut=len(kept) < len(ids), prompt_tokens=len(ids)))


def always(raw: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Answer with these bytes."""

    async def answer(request: web.Request, asked: Asked) -> web.StreamResponse:
        return web.Response(body=raw, status=status, headers=headers, content_type="application/json")

    return answer


def json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Answer with this as JSON."""
    return always(orjson.dumps(value), status, headers)


async def hang(request: web.Request, asked: Asked) -> web.StreamResponse:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


async def reset_in_mid_body(request: web.Request, asked: Asked) -> web.StreamResponse:
    """Promise 1,000 bytes, send some, and cut the connection."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices": [')
    assert request.transport is not None
    request.transport.abort()
    return response


async def endless(request: web.Request, asked: Asked) -> web.StreamResponse:
    """Send an answer that does not end, 1 MiB at a time."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 2**20)


@asynccontextmanager
async def serve() -> AsyncIterator[EngineServer]:
    """Listen at a free port until the block ends."""
    server = EngineServer("", echo)

    async def handle(request: web.Request) -> web.StreamResponse:
        dialect = next(name for name, path in PATHS.items() if path == request.path)
        asked = Asked(dialect, dict(request.headers), orjson.loads(await request.read()))
        server.asked.append(asked)
        server.got_one.set()
        try:
            return await server.answer(request, asked)
        except asyncio.CancelledError:
            server.cut_one.set()
            raise

    async def page(request: web.Request) -> web.StreamResponse:
        server.fetched.append(request.path)
        if status := server.refuses.get(request.path, server.refuses.get("")):
            return web.Response(status=status, text="no")
        if request.path not in server.pages:
            return web.Response(status=404)
        return web.Response(body=server.pages[request.path])

    app = web.Application(client_max_size=2**26)
    for path in PATHS.values():
        app.router.add_post(path, handle)
    app.router.add_get("/{page:.*}", page)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()
