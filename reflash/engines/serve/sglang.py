"""SGLang's command line and environment (seen with 0.5.17 on a GPU). Pure."""

from __future__ import annotations

from reflash.engines.serve.command import LOOPBACK, Asked, Command, quiet

KEY = "REFLASH_SERVER_KEY"
# SGLang takes its key as an argument alone. This puts it there inside the process, where no `ps` shows it.
START = (
    f"import os, runpy, sys; sys.argv += ['--api-key', os.environ.pop({KEY!r})]; "
    "runpy.run_module('sglang.launch_server', run_name='__main__')"
)
CACHES = {"fp8": "fp8_e4m3"}


def sglang_command(asked: Asked, port: int, key: str) -> Command:
    """One server on `asked.gpus`; its key stands in the environment."""
    config = asked.config
    more, reasons = _of_the_model(asked)
    flags = {**_of_the_config(asked, port), **more}
    environment = {**quiet(asked), KEY: key}
    _see_gpus(asked, environment, reasons)
    if asked.installed.version("flashinfer") is None:
        flags |= {"--attention-backend": "triton", "--sampling-backend": "pytorch"}
        environment["SGLANG_IS_FLASHINFER_AVAILABLE"] = "false"
        reasons.append("--attention-backend triton --sampling-backend pytorch: flashinfer is not in the environment")
    if "--enable-deterministic-inference" not in config.args:
        reasons.append("seeds have no effect: SGLang heeds them only with --enable-deterministic-inference in `args`")
    switches = ["--enable-metrics", "--skip-server-warmup"]
    if config.prefix_caching == "off":
        switches.append("--disable-radix-cache")
    elif asked.facts.hybrid and config.prefix_caching == "auto":
        switches.append("--disable-radix-cache")
        reasons.append(
            f"--disable-radix-cache: without it a request of {asked.facts.model_type} takes five state slots "
            "(256 asked, 46 held)"
        )
    pairs = [word for pair in flags.items() for word in pair]
    argv = (asked.installed.python, "-c", START, *pairs, *switches, *config.args)
    return Command(argv, {**environment, **config.env}, tuple(reasons))


def _of_the_config(asked: Asked, port: int) -> dict[str, str]:
    config = asked.config
    flags = {
        "--model-path": config.model,
        "--host": LOOPBACK,
        "--port": str(port),
        "--context-length": str(asked.context),
        "--max-running-requests": str(config.width),
        "--cuda-graph-max-bs-decode": str(config.width),  # larger batches would run without a graph
        "--mem-fraction-static": str(config.gpu_memory_utilization),
        "--tp-size": str(len(asked.gpus)),
        "--grammar-backend": "none",  # never asked for
        "--log-level-http": "warning",  # a line a request else
    }
    if config.revision:
        flags["--revision"] = config.revision
    if config.kv_dtype != "auto":
        flags["--kv-cache-dtype"] = CACHES.get(config.kv_dtype, config.kv_dtype)
    if config.load_format != "auto":
        flags["--load-format"] = config.load_format
    return flags


def _of_the_model(asked: Asked) -> tuple[dict[str, str], list[str]]:
    kind = asked.facts.model_type
    if not (asked.facts.hybrid and asked.facts.multimodal):
        return {}, []
    flags = {
        "--mm-attention-backend": "triton_attn",
        "--mm-feature-transport": "cpu",
        "--cuda-graph-backend-prefill": "disabled",
    }
    words = " ".join(word for pair in flags.items() for word in pair)
    return flags, [f"{words}: {kind} also sees, and did not start without these (seen with 0.5.17)"]


def _see_gpus(asked: Asked, environment: dict[str, str], reasons: list[str]) -> None:
    if len(asked.gpus) == 1:
        environment["CUDA_VISIBLE_DEVICES"] = asked.gpus[0].uuid
        return
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu.index) for gpu in asked.gpus)
    reasons.append("GPUs by number, not UUID: SGLang's all-reduce reads CUDA_VISIBLE_DEVICES as numbers")
