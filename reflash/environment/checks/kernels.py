"""What the GPU did with programs that were launched on it."""

from __future__ import annotations

from collections.abc import Callable

from reflash.environment.checks.base import Answer, Case, Check, builds, check, fail, good, idle, unknown, warn

LINE = "Kernels"
SLOWER_WARN, SLOWER_FAIL = 0.9, 0.75  # of this machine's own baseline
BUSY = 10  # percent of a card before the programs were launched
TRACE = "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE while it works; what else runs on the card"
AGAIN = "reflash engines install ENGINE --anew"


def _came_of(name: str, fatal: Callable[[Case], bool]) -> Callable[[Case], Answer]:
    def rule(case: Case) -> Answer:
        kernel = case.facts.kernels.get(name)
        if kernel is None:
            return idle("it was not launched")
        if kernel.outcome == "absent":
            return unknown(kernel.says)
        if kernel.outcome == "passed":
            return good(f"{kernel.says} in {kernel.seconds:.0f} s")
        return (fail if fatal(case) else warn)(f"{kernel.outcome}: {kernel.says}")

    return rule


def _kernel(name: str, needs: str, remedy: str, fatal: Callable[[Case], bool] = lambda _: True) -> Check:
    return check(f"kernel.{name}", needs, remedy, LINE, needed=True)(_came_of(name, fatal))


cuinit = _kernel("cuinit", "cuInit succeeds in a child process", "nvidia-smi; sudo nvidia-modprobe -u -c=0")
bf16 = _kernel("bf16", "a bf16 matmul gives the right numbers", "reflash engines install ENGINE --torch cu130 --anew")
host_copy = _kernel(
    "host_copy",
    "memory of the host comes back from every card as it was",
    "sudo dmesg | grep -iE 'Xid|AER'; reseat the card",
)
triton = _kernel(
    "triton", "a Triton kernel near the shared-memory limit compiles, runs and is right", "use a newer triton: " + AGAIN
)
graph = _kernel("graph", "a CUDA graph is captured and replayed", "engine.args: [--enforce-eager]")
flash_attention = _kernel(
    "flash_attention",
    "flash attention with grouped heads at head size 256 is right",
    "engine.args: [--attention-backend, TRITON_ATTN]",
)
gated_delta = _kernel(
    "gated_delta",
    "the gated delta rule, prefill and decode, runs in the memory that is left",
    "lower engine.gpu_memory_utilization, or use a newer engine",
)
fp8 = _kernel("fp8", "an FP8 scaled matmul is right, where the checkpoint needs it", "use a 16-bit checkpoint")
nvfp4 = _kernel("nvfp4", "an NVFP4 matmul is right and not zero at several sizes", "use an FP8 or a 16-bit checkpoint")
jit = _kernel("jit", "a tiny extension compiles and loads", "install ninja and a toolkit of torch's CUDA", builds)
all_reduce = _kernel(
    "all_reduce",
    "two ranks agree on a sum within 60 s",
    "NCCL_P2P_DISABLE=1, or switch off IOMMU and ACS in the BIOS",
)
peer_copy = _kernel(
    "peer_copy", "a copy from card to card is the same byte for byte", "NCCL_P2P_DISABLE=1, or switch off IOMMU and ACS"
)


def _rate(id_: str, kernel_name: str, unit: str, needs: str) -> Check:
    def rule(case: Case) -> Answer:
        kernel = case.facts.kernels.get(kernel_name)
        if kernel is None or kernel.outcome != "passed":
            return idle("it was not measured")
        if kernel.rate is None:
            return unknown("it told no rate")
        best = case.last.baseline.get(kernel_name) if case.last else None
        words = f"{kernel.rate:.0f} {unit}"
        if not best:
            return good(f"{words}, the baseline")
        words += f"; the best so far {best:.0f}"
        share = kernel.rate / best
        if share < SLOWER_WARN and any((card.busy or 0) >= BUSY for card in case.facts.cards):
            return warn(f"{words}; something else was at work there")
        return fail(words) if share < SLOWER_FAIL else warn(words) if share < SLOWER_WARN else good(words)

    return check(id_, needs, TRACE, LINE)(rule)


matmul_rate = _rate("rate.matmul", "bf16", "TFLOP/s", "the best matmul rate of this machine, -10 % at most")
host_rate = _rate("rate.host", "host_copy", "GB/s", "the best host-to-device rate of this machine, -10 % at most")
