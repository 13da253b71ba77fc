"""Engines that run already: each URL is asked what it is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from time import monotonic

import aiohttp
from yarl import URL

from reflash.config.engine import EndpointConfig
from reflash.engines.base import Engine
from reflash.engines.dialects.registry import DIALECTS
from reflash.engines.failures import failure
from reflash.engines.http import HttpEngine, open_session
from reflash.engines.identity import MODELS, PAGES, Identity, identify
from reflash.errors import ConfigError, EngineAbsent, EngineError, EngineMisconfigured

KEY_VARIABLE = "REFLASH_API_KEY"
PAUSE_S = 0.25  # between two attempts to reach a server that is starting


async def open_endpoints(config: EndpointConfig) -> list[Engine]:
    """Reach every URL and learn what answers there, in the order of the config.

    Raises EngineAbsent naming the URL that cannot be reached within `patience.connect_s`, EngineMisconfigured where it
    refuses the key or speaks nothing known, ConfigError where it is no URL.
    """
    urls = [base_url(url) for url in config.urls]
    key = config.api_key.get_secret_value() if config.api_key else os.environ.get(KEY_VARIABLE) or None
    opened = await asyncio.gather(*(_open(url, config, key) for url in urls), return_exceptions=True)
    engines = [engine for engine in opened if isinstance(engine, HttpEngine)]
    for fault in opened:
        if isinstance(fault, BaseException):
            for engine in engines:
                await engine.aclose()
            raise fault
    return list(engines)


def base_url(url: str) -> str:
    """A URL as the config means it: no final slash, no `/v1`; raises ConfigError where it is none."""
    try:
        parsed = URL(url.strip())
    except ValueError as error:
        raise ConfigError(f"engine.urls: {url} is no URL ({error}); write http://host:port") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigError(f"engine.urls: {url} is no URL of a server; write http://host:port")
    return str(parsed.with_query(None).with_fragment(None)).rstrip("/").removesuffix("/v1")


async def _open(url: str, config: EndpointConfig, key: str | None) -> HttpEngine:
    if key and URL(url).user:
        raise ConfigError(
            f"engine.urls: {URL(url).host} has a user in its URL and an `api_key`; it can be sent only one"
        )
    who = await probe(url, config, key)
    return HttpEngine(
        url,
        DIALECTS[who.dialect],
        model=config.model or who.model,
        width=config.width,
        patience=config.patience,
        api_key=key,
        version=who.version,
        context=who.context,
    )


async def probe(url: str, config: EndpointConfig, key: str | None) -> Identity:
    """Ask a server for the pages that tell servers apart, and say what it is."""
    name = str(URL(url).with_user(None))
    async with open_session(config.patience, key) as session:
        pages = await _pages(session, url, name, config.patience.connect_s)
    who = identify(pages, None if config.dialect == "auto" else config.dialect)
    if who is None:
        raise EngineMisconfigured(
            f"{name}: answers, but is neither vLLM, SGLang nor llama.cpp and lists no models at /v1/models; "
            "check `urls`, or say what it speaks with `dialect`"
        )
    return who


async def _pages(session: aiohttp.ClientSession, url: str, name: str, patience_s: float) -> Mapping[str, bytes]:
    """The pages that answered 200. The first is asked for until the server is there; raises EngineError."""
    end = monotonic() + patience_s
    fault: EngineError | None = None
    while (left := end - monotonic()) > 0:
        try:
            async with asyncio.timeout(left):
                pages = await asyncio.gather(*(_page(session, url, name, page) for page in PAGES))
        except EngineError as error:
            if not error.retryable:
                raise
            fault = error
        except TimeoutError:
            fault = fault or EngineAbsent(f"{name}: no answer")
        else:
            return {page: body for page, body in zip(PAGES, pages, strict=True) if body is not None}
        await asyncio.sleep(min(PAUSE_S, max(0.0, end - monotonic())))
    raise EngineAbsent(f"{fault or name} (not there within {patience_s:g} s; is the engine running? see `urls`)")


async def _page(session: aiohttp.ClientSession, url: str, name: str, page: str) -> bytes | None:
    """One page, None where the server has none; raises EngineError where it is not ready or refuses the key."""
    try:
        async with session.get(URL(url).joinpath(page.lstrip("/")), allow_redirects=False) as response:
            raw = await response.read()
            status = response.status
    except (aiohttp.ClientError, OSError) as error:
        said = str(error) or type(error).__name__
    else:
        # A proxy may forbid the other pages; and a page that is only busy must not make vLLM look like a chat server.
        if status in (429, 503) or (page == MODELS and (status in (401, 403) or status >= 500)):
            raise failure(status, page, name)
        return raw if status == 200 else None
    raise EngineAbsent(f"{name}: {said}")
