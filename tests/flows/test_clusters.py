"""Templates for Slurm and Kubernetes: valid where that can be seen without a cluster, and of commands that exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from benchmarks.servers import prefect_server
from flows.cli import app
from reflash.report.status import run_status
from tests.flows.made import MODEL
from tests.flows.test_stopped import ROOT
from tests.making import config, conversations_file

CLUSTERS = ROOT / "deployments"
SCRIPTS = sorted((CLUSTERS / "slurm").glob("*.sbatch"))
MANIFESTS = [CLUSTERS / "kubernetes" / name for name in ("worker.yaml", "nodes.yaml")]
POOL = CLUSTERS / "kubernetes" / "pool.json"
HOLE = re.compile(r"\{\{ (\w+) \}\}")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command of ours or of Prefect's that a template or its page gives, as words."""
    texts = {file: file.read_text() for file in (*SCRIPTS, CLUSTERS / "kubernetes" / "Dockerfile")}
    for file, text in (texts | {ROOT / "docs" / "nodes.md": (ROOT / "docs" / "nodes.md").read_text()}).items():
        for found in re.findall(r"(?:^|[\s`])((?:reflash|prefect) [a-z][^`\n#;|&>]*)", text.replace("\\\n", " ")):
            yield file.name, shlex.split(found)
    for file in MANIFESTS:
        for manifest in yaml.safe_load_all(file.read_text()):
            for container in manifest.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
                yield file.name, container["command"]


def test_every_reflash_command_in_them_is_one_with_those_options() -> None:
    checked = 0
    for file, (program, *words) in commands():
        if program != "reflash":
            continue
        command: Any = get_command(app)
        while hasattr(command, "commands"):
            assert words[0] in command.commands, (file, words)
            command, words = command.commands[words[0]], words[1:]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, (file, words)
        checked += 1
    assert checked >= 6


@pytest.mark.slow
def test_every_prefect_command_in_them_is_one_with_those_options() -> None:
    given = [(file, words) for file, (program, *words) in commands() if program == "prefect"]
    assert len(given) >= 3
    for file, words in given:
        options = [word for word in words if word.startswith("--")]
        first = next((n for n, word in enumerate(words) if word.startswith("--") and word != "--no-prompt"), len(words))
        name = [word for word in words[:first] if word != "--no-prompt"][:2]
        asked = [sys.executable, "-m", "prefect", *name, "--help"]
        told = subprocess.run(asked, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"})
        assert told.returncode == 0, (file, words, told.stderr)
        assert [option for option in options if option not in told.stdout and option != "--no-prompt"] == [], file


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_is_sound_and_asks_the_scheduler_before_anything_else(script: Path) -> None:
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    lines = script.read_text().splitlines()
    asking = [n for n, line in enumerate(lines) if line.startswith("#SBATCH ")]
    first = next(n for n, line in enumerate(lines) if line and not line.startswith("#"))
    assert asking
    assert max(asking) < first  # Slurm reads none below the first command


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
def test_a_manifest_is_what_kubernetes_takes(file: Path) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    for manifest in yaml.safe_load_all(file.read_text()):
        kubernetes.validate(manifest, "1.34", strict=True)


def filled(value: Any, values: dict[str, Any]) -> Any:
    """A job as the worker makes it: a string that is one hole becomes the value, with its type."""
    if isinstance(value, dict):
        return {key: found for key, inner in value.items() if (found := filled(inner, values)) is not None}
    if isinstance(value, list):
        return [filled(inner, values) for inner in value]
    if isinstance(value, str) and (hole := HOLE.fullmatch(value)):
        return values.get(hole[1])
    return HOLE.sub(lambda hole: str(values.get(hole[1])), value) if isinstance(value, str) else value


def test_the_pool_asks_for_nothing_that_its_form_does_not_name() -> None:
    pool = json.loads(POOL.read_text())
    assert set(HOLE.findall(json.dumps(pool["job_configuration"]))) == set(pool["variables"]["properties"])


def test_the_pool_makes_a_job_that_kubernetes_takes() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    pool = json.loads(POOL.read_text())
    values = {name: told.get("default") for name, told in pool["variables"]["properties"].items()}
    [deployment] = yaml.safe_load((CLUSTERS / "kubernetes" / "prefect.yaml").read_text())["deployments"]
    values |= {**deployment["work_pool"]["job_variables"], "name": "node-of-all", "command": ["prefect"], "env": []}
    job = filled(pool["job_configuration"]["job_manifest"], values)
    kubernetes.validate(job, "1.34", strict=True)
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}


@pytest.mark.prefect
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_server_takes_the_pool_and_its_deployment_as_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "nodes.md").read_text()
    given = re.findall(r"^uv run prefect (.*)$", page, re.MULTILINE)
    assert len(given) == 2
    with prefect_server(tmp_path, None) as server:
        for words in given:
            command = [sys.executable, "-m", "prefect", *shlex.split(words)]
            told = subprocess.run(command, env=server.env, cwd=ROOT, capture_output=True, text=True, check=False)
            assert told.returncode == 0, told.stdout + told.stderr
        [made] = server.post("deployments/filter", {})
        assert (made["name"], made["work_pool_name"]) == ("kubernetes", "reflash-kubernetes")
        assert made["pull_steps"] == [{"prefect.deployments.steps.set_working_directory": {"directory": "/app"}}]
        [pool] = [found for found in server.post("work_pools/filter", {}) if found["name"] == "reflash-kubernetes"]
        assert pool["base_job_template"]["job_configuration"]["job_manifest"]["kind"] == "Job"


@pytest.mark.prefect
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
def test_tasks_of_a_slurm_array_make_a_whole_run(tmp_path: Path) -> None:
    """The script itself, with an `srun` that starts its command here."""
    (tmp_path / "srun").write_text('#!/bin/sh\nexec "$@"\n')
    (tmp_path / "srun").chmod(0o755)
    run = config(
        tmp_path / "run",
        source={"path": str(conversations_file(tmp_path / "rows.jsonl", 192))},
        model=MODEL,
        engine={"kind": "scripted", "script": "slow", "width": 2},
        plan={"shard_rows": 64, "workers": 1},
        generate={"heartbeat_s": 1.0, "expiry_s": 5.0},
    )
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(run.model_dump(mode="json")))
    command = ["bash", CLUSTERS / "slurm" / "run.sbatch", tmp_path / "run.yaml"]
    bare = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    bare |= {"PREFECT_HOME": str(tmp_path / "prefect"), "PATH": f"{tmp_path}:{bare['PATH']}"}
    tasks = []
    for number in ("1", "0"):  # the one that joins is early
        with (tmp_path / f"{number}.log").open("wb") as log:
            env = {**bare, "SLURM_ARRAY_TASK_ID": number}
            tasks.append(subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log))
    assert [task.wait(300) for task in tasks] == [0, 0], [(tmp_path / f"{n}.log").read_text() for n in "10"]
    found = run_status(run.run)
    assert (found["complete"], found["rows_done"]) == (True, 192)
    assert len(list(Path(run.run, "nodes").glob("*.json"))) == 2
