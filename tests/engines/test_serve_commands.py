"""The command line and environment of each server: what is wanted, by its own names."""

from __future__ import annotations

from typing import Any

import pytest

from reflash.config.engine import ServedConfig, SglangConfig, VllmConfig
from reflash.engines.layout.model import ModelFacts
from reflash.engines.serve.command import Asked, Command, Installed, check_args, server_environment
from reflash.engines.serve.sglang import sglang_command
from reflash.engines.serve.story import first_error, remedy
from reflash.engines.serve.vllm import vllm_command
from reflash.errors import ConfigError
from tests.engines.sizes import LARGE, SMALL, cards

WHOLE = Installed("/env/bin/python", {"vllm": "0.33.0", "sglang": "0.5.23", "flashinfer": "0.7.2"})
BARE = Installed("/env/bin/python", {"vllm": "0.26.0", "sglang": "0.5.17"})


def asked(config: ServedConfig, facts: ModelFacts = SMALL, installed: Installed = WHOLE, **more: Any) -> Asked:
    return Asked(
        **{
            "config": config,
            "installed": installed,
            "facts": facts,
            "local": True,
            "device": "gpu",
            "context": 16384,
            "gpus": tuple(cards(1)),
            **more,
        }
    )


def vllm(facts: ModelFacts = SMALL, installed: Installed = WHOLE, *, more: Any = None, **config: Any) -> Command:
    return vllm_command(asked(VllmConfig(model="/m", **config), facts, installed, **(more or {})), 8100, "secret")


def sglang(facts: ModelFacts = SMALL, installed: Installed = WHOLE, *, more: Any = None, **config: Any) -> Command:
    return sglang_command(asked(SglangConfig(model="/m", **config), facts, installed, **(more or {})), 8200, "secret")


def value(command: Command, flag: str) -> str | None:
    """Of a flag; the last one counts."""
    found = [after for word, after in zip(command.argv, command.argv[1:], strict=False) if word == flag]
    return found[-1] if found else None


@pytest.mark.parametrize("make", [vllm, sglang])
def test_a_server_listens_on_loopback_and_its_key_is_in_its_environment_alone(make: Any) -> None:
    command = make()
    assert value(command, "--host") == "127.0.0.1"
    assert "secret" not in " ".join((*command.argv, *command.reasons))
    assert "secret" in command.environment.values()


@pytest.mark.parametrize("make", [vllm, sglang])
def test_nothing_is_reported_to_anybody_and_the_hub_is_closed_for_a_local_model_alone(make: Any) -> None:
    command = make()
    assert command.environment["DO_NOT_TRACK"] == command.environment["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert command.environment["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in make(more={"local": False}).environment


def test_vllm_is_told_what_the_config_says() -> None:
    command = vllm(width=300, gpu_memory_utilization=0.8, kv_dtype="fp8", load_format="dummy", revision="abc")
    assert command.argv[:5] == ("/env/bin/python", "-m", "vllm.entrypoints.cli.main", "serve", "/m")
    wanted = {
        "--port": "8100",
        "--max-model-len": "16384",
        "--max-num-seqs": "300",
        "--gpu-memory-utilization": "0.8",
        "--kv-cache-dtype": "fp8",
        "--load-format": "dummy",
        "--revision": "abc",
        "--tensor-parallel-size": "1",
    }
    assert {flag: value(command, flag) for flag in wanted} == wanted
    assert command.environment["VLLM_NO_USAGE_STATS"] == "1"
    assert command.environment["CUDA_VISIBLE_DEVICES"] == "GPU-0000-abc"


def test_vllm_gets_a_group_of_gpus_by_uuid() -> None:
    command = vllm(more={"gpus": tuple(cards(2))})
    assert value(command, "--tensor-parallel-size") == "2"
    assert command.environment["CUDA_VISIBLE_DEVICES"] == "GPU-0000-abc,GPU-0001-abc"


def test_vllm_serves_qwen36_as_text_and_says_why() -> None:
    command = vllm(LARGE)
    assert "--language-model-only" in command.argv
    assert value(command, "--gdn-prefill-backend") is None
    assert "qwen3_5 also sees" in command.reasons[0]
    assert vllm().reasons == ()


def test_vllm_without_flashinfer_gets_the_kernel_that_is_there() -> None:
    command = vllm(LARGE, BARE)
    assert value(command, "--gdn-prefill-backend") == "triton"
    assert command.environment["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
    assert any("dies at its first request" in reason for reason in command.reasons)
    assert value(vllm(SMALL, BARE), "--gdn-prefill-backend") is None


def test_vllm_on_a_cpu_sees_no_gpu_and_bounds_its_cache() -> None:
    command = vllm(LARGE, BARE, more={"device": "cpu", "gpus": ()})
    assert "CUDA_VISIBLE_DEVICES" not in command.environment
    assert command.environment["VLLM_CPU_KVCACHE_SPACE"] == "4"
    assert value(command, "--gdn-prefill-backend") is None
    assert "--tensor-parallel-size" not in command.argv


def test_sglang_is_told_what_the_config_says() -> None:
    command = sglang(width=300, gpu_memory_utilization=0.8, kv_dtype="fp8", load_format="dummy")
    wanted = {
        "--model-path": "/m",
        "--port": "8200",
        "--context-length": "16384",
        "--max-running-requests": "300",
        "--cuda-graph-max-bs-decode": "300",
        "--mem-fraction-static": "0.8",
        "--kv-cache-dtype": "fp8_e4m3",
        "--load-format": "dummy",
        "--tp-size": "1",
    }
    assert {flag: value(command, flag) for flag in wanted} == wanted
    assert {"--enable-metrics", "--skip-server-warmup"} < set(command.argv)
    assert "--disable-radix-cache" not in command.argv


def test_sglang_serves_a_hybrid_model_without_its_prefix_cache_and_says_why() -> None:
    command = sglang(LARGE, BARE)
    assert "--disable-radix-cache" in command.argv
    assert value(command, "--mm-attention-backend") == "triton_attn"
    assert value(command, "--cuda-graph-backend-prefill") == "disabled"
    assert value(command, "--attention-backend") == "triton"
    assert command.environment["SGLANG_IS_FLASHINFER_AVAILABLE"] == "false"
    assert any("256 asked, 46 held" in reason for reason in command.reasons)


def test_sglang_gets_one_gpu_by_uuid_and_several_by_number() -> None:
    assert sglang().environment["CUDA_VISIBLE_DEVICES"] == "GPU-0000-abc"
    several = sglang(more={"gpus": tuple(cards(2, first=4))})
    assert several.environment["CUDA_VISIBLE_DEVICES"] == "4,5"
    assert several.environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_sglang_says_that_seeds_have_no_effect_until_it_is_told_to_heed_them() -> None:
    assert any("seeds have no effect" in reason for reason in sglang().reasons)
    assert not sglang(args=("--enable-deterministic-inference",)).reasons


@pytest.mark.parametrize("make", [vllm, sglang])
def test_arguments_and_environment_of_the_config_come_last(make: Any) -> None:
    command = make(args=("--dtype", "float16"), env={"DO_NOT_TRACK": "0", "MORE": "x"})
    assert command.argv[-2:] == ("--dtype", "float16")
    assert (command.environment["DO_NOT_TRACK"], command.environment["MORE"]) == ("0", "x")


@pytest.mark.parametrize("arg", ["--port=1", "--host", "--api-key", "--tp-size"])
def test_what_is_set_here_cannot_be_given(arg: str) -> None:
    with pytest.raises(ConfigError, match=rf"engine\.args: {arg.partition('=')[0]} cannot be given"):
        check_args(VllmConfig(model="/m", args=(arg,)))
    with pytest.raises(ConfigError, match=r"engine\.env: CUDA_VISIBLE_DEVICES cannot be given, write the GPUs"):
        check_args(VllmConfig(model="/m", env={"CUDA_VISIBLE_DEVICES": "0"}))


def test_a_server_does_not_get_the_paths_of_our_interpreter_nor_our_key() -> None:
    ours = {"PYTHONPATH": "/ours", "VIRTUAL_ENV": "/ours", "REFLASH_API_KEY": "k", "HOME": "/root"}
    assert server_environment(ours, {"A": "b"}) == {"HOME": "/root", "A": "b"}
    assert server_environment(ours, {"PYTHONPATH": "/site"})["PYTHONPATH"] == "/site"


def test_the_first_error_is_the_one_that_the_others_came_from() -> None:
    log = """\
INFO starting
WARNING Found ulimit of 1024. This can cause errors like `OSError: [Errno 24] Too many open files`. Consider ulimit -n
(EngineCore) ERROR Traceback (most recent call last):
(EngineCore) ERROR ValueError: Free memory on device cuda:0 (3/24 GiB) is less than desired GPU memory utilization
(APIServer) RuntimeError: Engine core initialization failed. See root cause above."""
    assert first_error(log).startswith("ValueError: Free memory on device")
    assert "somebody else uses the GPU" in first_error(log)
    assert first_error("RuntimeError: Engine core initialization failed.") != ""
    assert first_error("all is well") == remedy("all is well") == ""


@pytest.mark.parametrize("kind", [VllmConfig, SglangConfig])
def test_only_the_cache_and_made_up_weights_decide_the_result(kind: type[ServedConfig]) -> None:
    plain = kind(model="/m")
    assert plain.decides == kind(model="/elsewhere/m", tp=2, width=8, args=("--x",), env={"A": "b"}).decides == "ids"
    assert kind(model="/m", kv_dtype="fp8").decides == "ids, fp8 cache"
    assert kind(model="/m", load_format="dummy").decides == "ids, dummy weights"
