"""vLLM's command line and environment (seen with 0.26 on GPUs and 0.32 on a CPU). Pure."""

from __future__ import annotations

from reflash.engines.serve.command import LOOPBACK, Asked, Command, quiet

KEY = "VLLM_API_KEY"
PREFIXES = {"on": ["--enable-prefix-caching"], "off": ["--no-enable-prefix-caching"]}
CPU_CACHE_GIB = "4"  # by default it would be the larger part of the machine's memory


def vllm_command(asked: Asked, port: int, key: str) -> Command:
    """One server on `asked.gpus`, or on the CPU; its key stands in the environment."""
    config = asked.config
    flags = {
        "--host": LOOPBACK,
        "--port": str(port),
        "--max-model-len": str(asked.context),
        "--max-num-seqs": str(config.width),
        "--uvicorn-log-level": "warning",  # a line a request else
    }
    if config.revision:
        flags["--revision"] = config.revision
    if config.kv_dtype != "auto":
        flags["--kv-cache-dtype"] = config.kv_dtype
    if config.load_format != "auto":
        flags["--load-format"] = config.load_format
    environment = {**quiet(asked), "VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1", KEY: key}
    if asked.device == "cpu":
        environment["VLLM_CPU_KVCACHE_SPACE"] = CPU_CACHE_GIB
    else:
        flags["--tensor-parallel-size"] = str(len(asked.gpus))
        flags["--gpu-memory-utilization"] = str(config.gpu_memory_utilization)
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in asked.gpus)
    wanted, reasons = _of_the_model(asked)
    if asked.device == "gpu" and asked.installed.version("flashinfer") is None:
        environment["VLLM_USE_FLASHINFER_SAMPLER"] = "0"
        reasons.append("VLLM_USE_FLASHINFER_SAMPLER=0: flashinfer is not in the environment")
    serve = (asked.installed.python, "-m", "vllm.entrypoints.cli.main", "serve", config.model)
    pairs = (word for pair in flags.items() for word in pair)
    return Command((*serve, *pairs, *wanted, *config.args), {**environment, **config.env}, tuple(reasons))


def _of_the_model(asked: Asked) -> tuple[list[str], list[str]]:
    flags, reasons = list(PREFIXES.get(asked.config.prefix_caching, ())), []
    kind = asked.facts.model_type
    if asked.facts.multimodal and kind.startswith("qwen3_"):
        flags.append("--language-model-only")
        reasons.append(f"--language-model-only: {kind} also sees, which is never asked for here")
    if asked.facts.hybrid and asked.device == "gpu" and asked.installed.version("flashinfer") is None:
        flags += ["--gdn-prefill-backend", "triton"]
        reasons.append(
            f"--gdn-prefill-backend triton: {kind} has gated-delta layers and flashinfer is not in the environment "
            "(a server without the kernel says that it is healthy, and dies at its first request)"
        )
    return flags, reasons
