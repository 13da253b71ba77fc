"""vLLM's flash attention over sequences of several lengths, with grouped heads at head size 256."""

from __future__ import annotations

from typing import Any

LENGTHS = (1, 17, 130)
HEADS, KV_HEADS = 8, 2


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Against plain attention in 32 bits on the CPU; `options` may hold another `head_size`."""
    import torch
    from vllm.vllm_flash_attn import flash_attn_varlen_func

    size = int(options.get("head_size") or 256)
    torch.manual_seed(0)
    total = sum(LENGTHS)
    q = torch.randn(total, HEADS, size, device="cuda:0", dtype=torch.bfloat16)
    k, v = (torch.randn(total, KV_HEADS, size, device="cuda:0", dtype=torch.bfloat16) for _ in range(2))
    starts = torch.tensor([0, *(sum(LENGTHS[: i + 1]) for i in range(len(LENGTHS)))], dtype=torch.int32)
    made = flash_attn_varlen_func(
        q,
        k,
        v,
        max_seqlen_q=max(LENGTHS),
        cu_seqlens_q=starts.cuda(),
        max_seqlen_k=max(LENGTHS),
        cu_seqlens_k=starts.cuda(),
        causal=True,
        fa_version=2,
    )
    for begin, length in zip(starts.tolist(), LENGTHS, strict=False):
        part = slice(begin, begin + length)
        grouped = [t[part].cpu().float().repeat_interleave(HEADS // KV_HEADS, 1).transpose(0, 1) for t in (k, v)]
        query = q[part].cpu().float().transpose(0, 1)
        want = torch.nn.functional.scaled_dot_product_attention(query, *grouped, is_causal=True).transpose(0, 1)
        off = (made[part].cpu().float() - want).abs().max().item()
        if not off < 0.05:
            return {"outcome": "wrong", "says": f"length {length}: off by {off:.3g}"}
    return {"outcome": "passed", "says": f"lengths {', '.join(map(str, LENGTHS))} at head size {size}"}
