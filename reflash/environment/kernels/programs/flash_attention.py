"""vLLM's flash attention over sequences of several lengths, with grouped heads at head size 256."""

from __future__ import annotations

from typing import Any

LENGTHS = (1, 17, 130)
HEADS, KV_HEADS, SIZE = 8, 2, 256


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Each version that vLLM would run on this card, against plain attention in 32 bits on the CPU."""
    from vllm.vllm_flash_attn import fa_version_unsupported_reason, is_fa_version_supported

    versions = [version for version in (2, 3) if is_fa_version_supported(version)]
    if not versions:
        return {"outcome": "wrong", "says": f"none runs here: {fa_version_unsupported_reason(2)}"}
    worst = {version: _off(version) for version in versions}
    for version, off in worst.items():
        if not off < 0.05:  # NaN is not
            return {"outcome": "wrong", "says": f"version {version}: off by {off:.3g}"}
    said = " and ".join(f"FA{version}" for version in versions)
    return {"outcome": "passed", "says": f"{said}, lengths {', '.join(map(str, LENGTHS))} at head size {SIZE}"}


def _off(version: int) -> float:
    """The largest difference over all sequences."""
    import torch
    from vllm.vllm_flash_attn import flash_attn_varlen_func

    torch.manual_seed(0)
    total = sum(LENGTHS)
    q = torch.randn(total, HEADS, SIZE, device="cuda:0", dtype=torch.bfloat16)
    k, v = (torch.randn(total, KV_HEADS, SIZE, device="cuda:0", dtype=torch.bfloat16) for _ in range(2))
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
        fa_version=version,
    )
    worst = torch.zeros(())
    for begin, length in zip(starts.tolist(), LENGTHS, strict=False):
        part = slice(begin, begin + length)
        grouped = [t[part].cpu().float().repeat_interleave(HEADS // KV_HEADS, 1).transpose(0, 1) for t in (k, v)]
        query = q[part].cpu().float().transpose(0, 1)
        want = torch.nn.functional.scaled_dot_product_attention(query, *grouped, is_causal=True).transpose(0, 1)
        worst = torch.maximum(worst, (made[part].cpu().float() - want).abs().max())  # which keeps NaN
    return float(worst)
