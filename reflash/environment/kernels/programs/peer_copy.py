"""Copies from card to card, compared byte for byte."""

from __future__ import annotations

from itertools import permutations
from typing import Any

SIZE = 64 * 2**20


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Every ordered pair."""
    import torch

    pairs = list(permutations(range(torch.cuda.device_count()), 2))
    if not pairs:
        return {"outcome": "absent", "says": "one GPU is visible"}
    for source, target in pairs:
        sent = torch.randint(0, 256, (SIZE,), dtype=torch.uint8, device=f"cuda:{source}")
        got = sent.to(f"cuda:{target}")
        torch.cuda.synchronize(target)
        if not torch.equal(got.cpu(), sent.cpu()):
            return {"outcome": "wrong", "says": f"GPU {source} to {target}: bytes changed on their way"}
    return {"outcome": "passed", "says": f"{len(pairs)} pairs"}
