"""The floor: the same requests as the flow's, sent by a plain client that keeps nothing and judges nothing."""

from __future__ import annotations

import asyncio
import json
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import aiohttp
import imposed
import orjson
import work
from serving import Server

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.engines.dialects.registry import DIALECTS
from reflash.render.shared import shared_renderer
from reflash.types import Message, Prompt, Sampling


def run_plain(options: Namespace, server: Server, rows: Path) -> dict[str, Any]:
    """Ids in, ids out, not streamed, `width` in flight; in figures like the benchmark's."""
    imposed.impose(imposed.lengths(str(options.tokens_out)))
    bodies = [DIALECTS[server.kind].body(prompt, options.model) for prompt in _prompts(options, rows)]
    began = time.monotonic()
    tokens = asyncio.run(_send(bodies, server, options.width))
    seconds = time.monotonic() - began
    return {
        "completed": len(tokens),
        "duration": seconds,
        "total_output_tokens": sum(tokens),
        "output_throughput": sum(tokens) / seconds,
    }


def _prompts(options: Namespace, rows: Path) -> list[Prompt]:
    renderer = shared_renderer(ModelConfig(**work.model(options)), ThinkingConfig())
    asked = [json.loads(line)["messages"][0]["content"] for line in rows.open()]
    told = json.loads(options.sampling)
    return [
        Prompt(
            conversation=str(number),
            turn=0,
            tokens=tuple(renderer.prompt((Message("user", text),), "", thinking=True)),
            max_new_tokens=options.tokens_out,
            sampling=Sampling(**told, seed=number),
        )
        for number, text in enumerate(asked)
    ]


async def _send(bodies: list[bytes], server: Server, width: int) -> list[int]:
    """The number of tokens in each answer."""
    todo = iter(bodies)
    counts: list[int] = []
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"}
    async with aiohttp.ClientSession(
        server.url, headers=headers, connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=3600)
    ) as session:

        async def work_off() -> None:
            for body in todo:
                async with session.post(DIALECTS[server.kind].path, data=body) as answer:
                    answer.raise_for_status()
                    counts.append(_counted(orjson.loads(await answer.read())))

        await asyncio.gather(*(work_off() for _ in range(width)))
    return counts


def _counted(answer: dict[str, Any]) -> int:
    return int((answer.get("usage") or answer["meta_info"])["completion_tokens"])
