"""A CUDA graph, captured once and replayed on other numbers."""

from __future__ import annotations

from typing import Any


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Replay must follow its input."""
    import torch

    given = torch.zeros(1024, device="cuda:0")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        given * 2 + 1
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = given * 2 + 1
    for value in (3.0, 5.0):
        given.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        if not bool((made == value * 2 + 1).all()):
            return {"outcome": "wrong", "says": f"replay on {value} gives {made[0].item()}"}
    return {"outcome": "passed", "says": "two replays follow their input"}
