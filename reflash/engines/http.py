"""An engine behind a URL: one server, one dialect, one connection pool."""

from __future__ import annotations

import asyncio
import json
from time import perf_counter

import aiohttp
from yarl import URL

from reflash.config.engine import Patience
from reflash.engines.dialects.base import Dialect
from reflash.engines.failures import failure, seconds_to_wait, words
from reflash.engines.load import Load, read_load
from reflash.errors import EngineAbsent, EngineError, EngineGarbage, EngineLost, EngineMisconfigured, EngineRefused
from reflash.printable import printable
from reflash.types import Completion, Prompt

LARGEST_ANSWER = 64 * 2**20  # bytes; 262,144 tokens with their text and the prompt's ids come to 5 MiB
LONGEST_FAULT = 600  # characters of an error's text
# Servers under uvicorn close an idle connection after 5 s. One closed while a request is on its way is a lost request,
# so it is let go of sooner.
IDLE_S = 4.0
LOOK_S = 5.0  # for one look at its figures


def open_session(patience: Patience, api_key: str | None) -> aiohttp.ClientSession:
    """A connection pool without a limit of its own: how much is in flight is the caller's business."""
    headers = {"Content-Type": "application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),  # written and parsed for every request
        timeout=aiohttp.ClientTimeout(total=patience.request_s, sock_connect=patience.connect_s),
    )


class HttpEngine:
    """A server that is asked over HTTP. One attempt a call; a cancelled call closes its connection."""

    def __init__(
        self,
        url: str,
        dialect: Dialect,
        *,
        model: str = "",
        width: int = 64,
        patience: Patience | None = None,
        api_key: str | None = None,
        name: str | None = None,
        version: str = "",
        context: int | None = None,
        vocabulary: int | None = None,
    ) -> None:
        """`url` is the base URL; `context` the most tokens of prompt and answer together, where the server tells it.

        A prompt with an id of `vocabulary` or above is refused here: one alone ends an SGLang server.

        Must be called inside a running event loop, which is the one that the engine then lives in.
        """
        base = URL(url)
        self.name = name or str(base.with_user(None)).rstrip("/")
        self.version = version
        self.exact = dialect.exact
        self.width = width
        self.context = context
        self._vocabulary = vocabulary
        self.dialect = dialect
        self.model = model
        self._patience = patience or Patience()
        self._api_key = api_key
        self._url = base.joinpath(dialect.path.lstrip("/"))
        self._metrics_url = base.joinpath("metrics")
        self._session = open_session(self._patience, api_key)

    def __repr__(self) -> str:
        return f"HttpEngine({self.name}, {self.dialect.name})"

    async def generate(self, prompt: Prompt) -> Completion:
        """Answer one prompt; raises EngineError of the kind that fits, never with the key in its text."""
        if self.exact and not prompt.tokens:
            raise EngineRefused(f"{self.name}: {prompt.conversation}, turn {prompt.turn}: the prompt has no tokens")
        if self._vocabulary and (highest := max(prompt.tokens)) >= self._vocabulary:
            raise EngineRefused(
                f"{self.name}: {prompt.conversation}, turn {prompt.turn}: id {highest}, but the model has "
                f"{self._vocabulary} ids: is model.tokenizer that model's?"
            )
        if self._session.closed:
            raise EngineAbsent(f"{self.name}: closed")
        body = self.dialect.body(prompt, self.model)
        sent = perf_counter()
        # aiohttp's errors hold the request's headers, the key among them: raised outside, they are not chained.
        try:
            raw = await self._post(body)
        except aiohttp.ConnectionTimeoutError:
            fault: EngineError = EngineAbsent(
                f"{self.name}: no connection within {self._patience.connect_s:g} s (patience.connect_s)"
            )
        except TimeoutError:
            fault = EngineLost(f"{self.name}: no answer within {self._patience.request_s:g} s (patience.request_s)")
        except aiohttp.ClientConnectorCertificateError:
            fault = EngineMisconfigured(f"{self.name}: its certificate is not trusted (check the host name in `urls`)")
        except aiohttp.ClientConnectorError as error:
            fault = EngineAbsent(f"{self.name}: {self._clean(words_of(error))}")
        except (aiohttp.ClientError, OSError) as error:
            fault = EngineLost(f"{self.name}: {self._clean(str(error) or type(error).__name__)}")
        else:
            return self._read_back(raw, prompt, perf_counter() - sent)
        raise fault

    async def load(self) -> Load | None:
        """What its `/metrics` page says; None where there is none, or no answer."""
        if not self.dialect.metrics.generated or self._session.closed:
            return None
        try:
            async with asyncio.timeout(LOOK_S), self._session.get(self._metrics_url, allow_redirects=False) as response:
                page = await read_body(response, self.name)
                return read_load(page.decode("utf-8", "replace"), self.dialect.metrics) if response.ok else None
        except (aiohttp.ClientError, OSError, TimeoutError, EngineError):
            return None

    def restart(self, why: str) -> bool:  # noqa: ARG002
        """Not by itself."""
        return False

    async def aclose(self) -> None:
        """Close the connections; requests on them are lost. A second call does nothing."""
        await self._session.close()

    async def _post(self, body: bytes) -> bytes:
        async with self._session.post(self._url, data=body, allow_redirects=False) as response:
            raw = await read_body(response, self.name)
            if response.status == 200:
                return raw
            wait = seconds_to_wait(response.headers.get("Retry-After"))
            raise failure(response.status, self._clean(words(self._without_key(raw))), self.name, wait)

    def _read_back(self, raw: bytes, prompt: Prompt, seconds: float) -> Completion:
        try:
            return self.dialect.completion(raw, prompt, self.name, seconds)
        except EngineError as error:
            error.args = (self._clean(self._fault_without_key(raw, prompt, str(error))),)
            raise

    def _fault_without_key(self, raw: bytes, prompt: Prompt, said: str) -> str:
        """The words for an answer that cannot be taken, read again from one in which the key does not stand.

        Only here: a key may be any word, such as `EMPTY`, so a good answer is left as it is.
        """
        clean = self._without_key(raw)
        if clean == raw:
            return said
        try:
            self.dialect.completion(clean, prompt, self.name, 0.0)
        except EngineError as error:
            return str(error)
        return f"{self.name}: an answer that cannot be taken, and that repeats the key"

    def _without_key(self, raw: bytes) -> bytes:
        """A body before its words are cut (half a key is one no longer found), as JSON may spell the key."""
        if self._api_key:
            inside = [json.dumps(self._api_key, ensure_ascii=only)[1:-1] for only in (True, False)]
            for spelled in (self._api_key, *inside, *(text.replace("/", "\\/") for text in inside)):
                raw = raw.replace(spelled.encode(), b"***")
        return raw

    def _clean(self, text: str) -> str:
        """Servers repeat a key that they do not know, and aiohttp what they sent."""
        return printable(text.replace(self._api_key, "***") if self._api_key else text, LONGEST_FAULT)


def words_of(error: Exception) -> str:
    """What a connection error says, without the library's repetitions of the address."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return printable((getattr(inner, "strerror", None) or str(error) or type(error).__name__).lower())


async def read_body(response: aiohttp.ClientResponse, engine: str) -> bytes:
    """All of a body; raises EngineGarbage where it is larger than any answer."""
    length = response.content_length
    if length is not None and length <= LARGEST_ANSWER and "Content-Encoding" not in response.headers:
        return await response.read()
    chunks: list[bytes] = []
    size = length or 0  # of a compressed answer what is sent, which is less than what is read
    while size <= LARGEST_ANSWER:
        chunk = await response.content.readany()
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
    response.close()
    raise EngineGarbage(f"{engine}: the answer is larger than {LARGEST_ANSWER // 2**20} MiB")
