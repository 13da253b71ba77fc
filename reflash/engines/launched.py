"""An engine that was launched here: what it answers, and its process."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from typing import IO

from reflash.engines.http import HttpEngine
from reflash.engines.load import Load
from reflash.engines.process import GRACE_S, end, end_of
from reflash.errors import EngineAbsent, EngineGone, EngineLost
from reflash.types import Completion, Prompt

LOOKS, LOOK_S = 10, 0.05  # whether a server that dropped a request is dying


class LaunchedEngine:
    """A server of our own, asked over loopback. Its process leads a session of its own."""

    def __init__(
        self,
        http: HttpEngine,
        process: subprocess.Popen[bytes],
        log: IO[bytes],
        *,
        grace_s: float = GRACE_S,
        story: Callable[[IO[bytes]], str] = end_of,
        forget: Callable[[], object] | None = None,
    ) -> None:
        """`story` says what the log tells of its death; `forget` is called once, when every process has ended."""
        self.name = http.name
        self.version = http.version
        self.exact = http.exact
        self.width = http.width
        self.context = http.context
        self._http = http
        self._process = process
        self._log = log
        self._grace_s = grace_s
        self._story = story
        self._forget = forget

    @property
    def pid(self) -> int:
        """Of the process that leads its group."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """The exit code of its process, None while it runs."""
        return self._process.poll()

    @property
    def http(self) -> HttpEngine:
        """The client: its URL, its dialect."""
        return self._http

    async def generate(self, prompt: Prompt) -> Completion:
        """Answer one prompt; raises EngineError, with the end of the log where the server has died."""
        try:
            return await self._http.generate(prompt)
        except (EngineAbsent, EngineLost) as error:
            code = await self._end_code()
            if code is None or self._log.closed:  # closed: it was ended by us, and what it says no longer matters
                raise
            raise EngineGone(f"{error}; its process ended with {code}.{self._story(self._log)}") from None

    async def _end_code(self) -> int | None:
        """Its exit code; None where it lives on. A killed process drops its connections before its last thread ends."""
        for _ in range(LOOKS):
            if (code := self._process.poll()) is not None:
                return code
            await asyncio.sleep(LOOK_S)
        return self._process.poll()

    async def load(self) -> Load | None:
        """What the server says of itself."""
        return await self._http.load()

    def restart(self, why: str) -> bool:  # noqa: ARG002
        """Not by itself."""
        return False

    async def aclose(self) -> None:
        """End the whole process group and wait for it. A second call does nothing."""
        await self._http.aclose()
        await end(self._process, self._grace_s)
        self._log.close()
        if self._forget is not None:
            forget, self._forget = self._forget, None
            await asyncio.to_thread(forget)
