"""Fetching, on this machine and on environments made for it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
from pathlib import Path

from reflash.config.machine import MachineAudit
from reflash.engines.layout.model import model_facts
from reflash.environment.collect.cards import events_of
from reflash.environment.collect.engine import read_engine
from reflash.environment.collect.gather import gather
from reflash.environment.collect.interpreter import Looked, look
from reflash.environment.collect.model import broken_shards, look_at_model
from reflash.environment.collect.system import read_system
from reflash.environment.collect.toolkit import read_toolkit
from reflash.environment.facts import Card, Driver, Python
from reflash.environment.judge import judge, verdict


class NoCards:
    """A machine without a driver."""

    def read(self) -> tuple[Driver, tuple[Card, ...]]:
        return Driver(error="NVMLError_LibraryNotFound"), ()


def test_a_machine_without_a_gpu_passes_with_the_embedded_engine_in_ten_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    findings = judge(gather(MachineAudit(runs=str(tmp_path)), NoCards()))
    assert time.monotonic() - began < 10
    assert verdict(findings) in ("pass", "warn"), [f for f in findings if f.remedy]
    assert not [f for f in findings if f.status in ("fail", "unknown")]


def test_packages_are_read_without_pip() -> None:
    python = look(sys.executable, ("reflash",)).python
    assert python.error == ""
    assert python.packages["pytest"]
    assert python.version == ".".join(map(str, sys.version_info[:3]))
    assert python.unmet == ()


def test_an_environment_made_without_pip_is_read_all_the_same(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = look(str(tmp_path / "env" / "bin" / "python"), ()).python
    assert (python.error, python.has_pip, dict(python.packages)) == ("", False, {})
    assert python.prefix == str(tmp_path / "env")
    assert python.unmet is None  # nobody there can read requirements


def test_an_interpreter_that_does_not_run_is_a_fact(tmp_path: Path) -> None:
    assert "there is no such program" in look(str(tmp_path / "python"), ()).python.error
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no such \033[31mlibrary' >&2\nexit 3\n")
    broken.chmod(0o755)
    assert look(str(broken), ()).python.error == f"{broken} does not run (exit code 3; no such \ufffd[31mlibrary)"


def environment(folder: Path, script: str) -> Looked:
    """What looking at an environment with vLLM told; its interpreter is ours, which has none."""
    (folder / "vllm").write_text(script)
    (folder / "vllm").chmod(0o755)
    return Looked(Python(sys.executable, packages={"vllm": "0.20.1"}), (), folder)


def test_a_console_script_is_run_and_a_failed_import_told(tmp_path: Path) -> None:
    engine = read_engine("vllm", environment(tmp_path, "#!/bin/sh\necho INFO starting\necho 0.20.1\n"))
    assert (engine.version, engine.says, engine.shebang_exists) == ("0.20.1", "0.20.1", True)
    assert "No module named" in (engine.import_error or "")


def test_a_script_of_an_environment_that_was_moved_names_an_interpreter_that_is_gone(tmp_path: Path) -> None:
    engine = read_engine("vllm", environment(tmp_path, "#!/old/place/bin/python\n"))
    assert (engine.shebang, engine.shebang_exists, engine.says) == ("/old/place/bin/python", False, None)
    long = "#!/bin/sh\n'''exec' \"/old/long place/bin/python\" \"$0\" \"$@\"\n' '''\n"
    assert read_engine("vllm", environment(tmp_path, long)).shebang == "/old/long place/bin/python"


def test_nvcc_is_found_as_flashinfer_finds_it(tmp_path: Path) -> None:
    for name, release in (("cuda-12.8", "12.8"), ("cuda-13.0", "13.0")):
        nvcc = tmp_path / name / "bin" / "nvcc"
        nvcc.parent.mkdir(parents=True)
        nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.88'\n")
        nvcc.chmod(0o755)
    path = f"{tmp_path}/cuda-12.8/bin:/usr/bin:/bin"
    assert read_toolkit({"PATH": path}).nvcc_version == "12.8"
    tool = read_toolkit({"PATH": path, "CUDA_HOME": f"{tmp_path}/cuda-13.0", "MAX_JOBS": "4"})
    assert (tool.nvcc_version, tool.max_jobs) == ("13.0", 4)


def test_ninja_of_the_environment_is_found_as_a_server_of_it_finds_it(tmp_path: Path) -> None:
    ninja = tmp_path / "bin" / "ninja"
    ninja.parent.mkdir()
    ninja.write_text("#!/bin/sh\n")
    ninja.chmod(0o755)
    assert read_toolkit({"PATH": "/nowhere"}).ninja is None
    assert read_toolkit({"PATH": "/nowhere"}, str(tmp_path / "bin" / "python")).ninja == str(ninja)


def test_events_are_those_of_the_card_itself() -> None:
    log = (
        "NVRM: Xid (PCI:0000:00:06): 79, pid='<unknown>', GPU has fallen off the bus.\n"
        "NVRM: Xid (PCI:0000:00:07): 31, pid=12\nNVRM: Xid (PCI:0000:00:06.0): 13, pid=9\n"
    )
    assert events_of(log, "00000000:00:06.0") == (79, 13)


def shard(path: Path, numbers: int) -> Path:
    header = json.dumps({"w": {"dtype": "F32", "shape": [numbers], "data_offsets": [0, 4 * numbers]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4 * numbers)
    return path


def test_shards_that_are_missing_or_cut_are_named(tmp_path: Path) -> None:
    names = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
    index = {"metadata": {"total_size": 1}, "weight_map": {f"w{i}": name for i, name in enumerate(names)}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for name in names:
        shard(tmp_path / name, 100)
    assert broken_shards(tmp_path) == []
    whole = (tmp_path / names[1]).read_bytes()
    (tmp_path / names[1]).write_bytes(whole[:-8])
    (tmp_path / names[2]).unlink()
    assert broken_shards(tmp_path) == [
        f"{names[2]} is missing",
        f"{names[1]} holds {len(whole) - 8} bytes, its header says {len(whole)}",
    ]
    (tmp_path / names[0]).write_bytes(b"\xff" * 20)
    assert f"{names[0]} is no safetensors file, or is cut in its header" in broken_shards(tmp_path)


def test_a_folder_tells_size_template_and_what_its_card_asks_for(tmp_path: Path) -> None:
    text = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    told = {"model_type": "qwen3", "max_position_embeddings": 4096, "architectures": ["Qwen3ForCausalLM"]}
    config = {**told, **text, "intermediate_size": 128, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_algo": "NVFP4"}}))
    (tmp_path / "README.md").write_text("# A model\n`vllm>=0.19.0` is recommended\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "vllm_deploy_guide.md").write_text("vLLM version v0.20.0 or later\n")
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    shard(tmp_path / "model.safetensors", 100)
    model = look_at_model(str(tmp_path))
    assert (model.error, model.model_type, model.context, model.quantised) == ("", "qwen3", 4096, "nvfp4")
    assert (model.template, model.broken, model.fits_tp) == (True, (), (1, 2, 4))
    assert [(a.package, a.version) for a in model.asks] == [("vllm", "0.19.0"), ("vllm", "0.20.0")]


def test_a_model_that_is_not_there_is_a_fact(tmp_path: Path) -> None:
    assert "there is no folder" in look_at_model(str(tmp_path / "none")).error


def test_a_hybrid_model_needs_64_kib_a_token_and_147_mib_a_sequence() -> None:
    text = {
        "num_hidden_layers": 64,
        "full_attention_interval": 4,
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "vocab_size": 248320,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
    }
    facts = model_facts({"model_type": "qwen3_5", "text_config": text}, None)
    assert facts.cache_per_token == 64 * 1024
    assert round(facts.state_per_sequence / 2**20) == 147


def test_the_system_is_read_and_the_hub_left_alone_when_offline(tmp_path: Path) -> None:
    system = read_system(
        tmp_path / "runs" / "new", hub=True, environment={"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    )
    assert system.hub is None
    assert system.disk_free
    assert system.write_rate
    assert system.memory_available
    assert not (tmp_path / "runs").exists()


def test_a_hub_that_takes_no_connection_is_told(tmp_path: Path) -> None:
    system = read_system(tmp_path, hub=True, environment={"HF_ENDPOINT": "http://127.0.0.1:1"})
    assert (system.hub or "").startswith("127.0.0.1:1 takes no connection")
