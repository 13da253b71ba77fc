"""A server launched as the project launches it, held for as long as several clients are to be compared on it."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import work
from pydantic import TypeAdapter

from reflash.config.engine import SglangConfig, VllmConfig
from reflash.engines.dialects.registry import DIALECTS
from reflash.engines.load import Load, read_load
from reflash.engines.serve.launch import launch_served

LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Server:
    """Where it is and what it speaks."""

    url: str
    key: str
    kind: str

    def load(self) -> Load | None:
        """What it says of itself now; None where it does not answer."""
        request = urllib.request.Request(f"{self.url}/metrics", headers={"Authorization": f"Bearer {self.key}"})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return read_load(answer.read().decode(), DIALECTS[self.kind].metrics)
        except OSError:
            return None


@asynccontextmanager
async def serving(options: Namespace, folder: Path) -> AsyncIterator[Server]:
    """Launched by the project's own launcher, with a log in `folder`; ended when the block ends."""
    if options.url:
        yield Server(options.url, "", options.kind)
        return
    config: VllmConfig | SglangConfig = TypeAdapter(VllmConfig | SglangConfig).validate_python(work.engine(options))
    began = time.monotonic()
    [engine] = await launch_served(config, options.context, folder)
    print(f"{engine.version}: first token after {time.monotonic() - began:.0f} s", flush=True)
    try:
        yield Server(str(engine.http._url.origin()), engine.http._api_key or "", options.kind)
    finally:
        began = time.monotonic()
        await engine.aclose()
        print(f"ended in {time.monotonic() - began:.1f} s", flush=True)


class Counter:
    """The server's own count of tokens, looked at twice a second while the block runs."""

    def __init__(self, server: Server, path: Path) -> None:
        self.samples: list[tuple[float, int, int, int]] = []  # Unix time, tokens, running, waiting
        self._server, self._path = server, path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self._path.write_text(json.dumps(self.samples))

    def _look(self) -> None:
        while not self._stop.wait(LOOK_S):
            load = self._server.load()
            if load and load.generated is not None:
                self.samples.append((time.time(), load.generated, load.running or 0, load.waiting or 0))

    def rate(self, begin: float, end: float) -> float | None:
        """Tokens a second between two moments, None where there are no looks."""
        inside = [s for s in self.samples if begin <= s[0] <= end]
        if len(inside) < 2:
            return None
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

    def middle(self, low: float = 0.05, high: float = 0.95) -> float | None:
        """Tokens a second between these shares of all tokens: without the first prompts and the last answers."""
        if not self.samples:
            return None
        first, all_ = self.samples[0][1], self.samples[-1][1] - self.samples[0][1]
        times = [s[0] for s in self.samples if low * all_ <= s[1] - first <= high * all_]
        return self.rate(times[0], times[-1]) if times else None
