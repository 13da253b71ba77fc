"""Engines that run already: each URL is asked what it is."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from time import monotonic

import aiohttp
from yarl import URL

from reflash.config.engine import EndpointConfig
from reflash.engines.base import Engine
from reflash.engines.dialects.registry import DIALECTS
from reflash.engines.failures import failure
from reflash.engines.held import width_held
from reflash.engines.http import HttpEngine, open_session, read_body, words_of
from reflash.engines.identity import MODELS, PAGES, Identity, identify, same_model
from reflash.errors import ConfigError, EngineAbsent, EngineError, EngineMisconfigured
from reflash.printable import printable

log = logging.getLogger(__name__)

KEY_VARIABLE = "REFLASH_API_KEY"
PAUSE_S = 0.25  # between two attempts to reach a server that is starting


async def open_endpoints(config: EndpointConfig, model: str = "") -> list[Engine]:
    """Reach every URL and learn what answers there, in the order of the config.

    A warning tells where they serve something else than `model`, the run's, and which URLs are left out because nobody
    is there. Raises EngineAbsent where nobody is anywhere within `patience.absent_s`, EngineMisconfigured where one
    refuses the key or speaks nothing known, ConfigError where it is no URL.
    """
    urls = [base_url(url) for url in config.urls]
    key = config.api_key.get_secret_value() if config.api_key else os.environ.get(KEY_VARIABLE) or None
    somebody = asyncio.Event()
    opened = await asyncio.gather(*(_open(url, config, key, somebody) for url in urls), return_exceptions=True)
    engines = [engine for engine in opened if isinstance(engine, HttpEngine)]
    for fault in (f for f in opened if isinstance(f, BaseException)):
        if engines and isinstance(fault, EngineAbsent):
            log.warning("%s It is left out.", fault)
            continue
        for engine in engines:
            await engine.aclose()
        raise fault
    if model:
        _warn_of_others(engines, model)
    return list(engines)


def _warn_of_others(engines: Sequence[HttpEngine], model: str) -> None:
    """Names differ for good reasons too, so it is for a person to judge: one line, however many engines."""
    others = {engine.model: engine.name for engine in engines if engine.model and not same_model(engine.model, model)}
    if others:
        served = ", ".join(f"{printable(name)} ({url})" for name, url in others.items())
        log.warning("the engine serves %s, but model.name is %s: is it the same model?", served, printable(model))


def base_url(url: str) -> str:
    """A URL as the config means it: no final slash, no `/v1`; raises ConfigError where it is none."""
    try:
        parsed = URL(url.strip())
    except ValueError as error:
        raise ConfigError(f"engine.urls: {url} is no URL ({error}); write http://host:port") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigError(f"engine.urls: {url} is no URL of a server; write http://host:port")
    return str(parsed.with_query(None).with_fragment(None)).rstrip("/").removesuffix("/v1")


async def _open(url: str, config: EndpointConfig, key: str | None, somebody: asyncio.Event) -> HttpEngine:
    who = await _wait_for(url, config, key, somebody)
    return HttpEngine(
        url,
        DIALECTS[who.dialect],
        model=config.model or who.model,
        width=width_held(url, config.width, who.width),
        patience=config.patience,
        api_key=key,
        version=who.version,
        context=who.context,
    )


async def _wait_for(url: str, config: EndpointConfig, key: str | None, somebody: asyncio.Event) -> Identity:
    """Who is at a URL; one that is not there is waited for, and that is said once. Less long where another is there."""
    patience = config.patience
    began, told = monotonic(), False
    while True:
        try:
            who = await probe(url, config, key)
        except EngineAbsent as error:
            left = (patience.connect_s if somebody.is_set() else patience.absent_s) - (monotonic() - began)
            if left <= 0:
                raise EngineAbsent(f"{error} Waited {monotonic() - began:.0f} s (engine.patience).") from None
            if not told:
                log.warning("%s Waiting for it, %.0f s at most.", error, left)
                told = True
        else:
            somebody.set()
            return who


async def probe(url: str, config: EndpointConfig, key: str | None) -> Identity:
    """Ask a server for the pages that tell servers apart, and say what it is."""
    async with open_session(config.patience, key) as session:
        pages = await _pages(session, url, config.patience.connect_s)
    who = identify(pages, None if config.dialect == "auto" else config.dialect)
    if who is None:
        raise EngineMisconfigured(
            f"{url}: answers, but is neither vLLM, SGLang nor llama.cpp and lists no models at /v1/models; "
            "check `urls`, or say what it speaks with `dialect`"
        )
    return who


async def _pages(session: aiohttp.ClientSession, url: str, patience_s: float) -> Mapping[str, bytes]:
    """The pages that answered 200. The first is asked for until the server is there; raises EngineError."""
    end = monotonic() + patience_s
    fault: EngineError | None = None
    while (left := end - monotonic()) > 0:
        try:
            async with asyncio.timeout(left):
                pages = await asyncio.gather(*(_page(session, url, page) for page in PAGES))
        except EngineError as error:
            if not error.retryable:
                raise
            fault = error
        except TimeoutError:
            fault = fault or EngineAbsent(f"{url}: no answer")
        else:
            return {page: body for page, body in zip(PAGES, pages, strict=True) if body is not None}
        await asyncio.sleep(min(PAUSE_S, max(0.0, end - monotonic())))
    raise EngineAbsent(f"{fault or url}: no engine answers there. Is it running? See `engine.urls`.")


async def _page(session: aiohttp.ClientSession, url: str, page: str) -> bytes | None:
    """One page, None where the server has none; raises EngineError where it is not ready or refuses the key."""
    try:
        async with session.get(URL(url).joinpath(page.lstrip("/")), allow_redirects=False) as response:
            raw = await read_body(response, url)
            status = response.status
    except (aiohttp.ClientError, OSError) as error:
        said = words_of(error)
    else:
        # A proxy may forbid the other pages; and a page that is only busy must not make vLLM look like a chat server.
        if status in (429, 503) or (page == MODELS and (status in (401, 403) or status >= 500)):
            raise failure(status, page, url)
        return raw if status == 200 else None
    raise EngineAbsent(f"{url}: {said}")
