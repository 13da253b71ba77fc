"""An environment for an engine, made by uv in a folder of its own."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from reflash.engines.provision.minimum import numbers
from reflash.engines.provision.place import Environment, read, root, write
from reflash.engines.provision.recipes import LOCK, Recipe, Wish, recipe_of, requirement, steps
from reflash.errors import ConfigError

MAKING = "reflash-engine.making"  # stands in a folder that is ours and not whole
VERSION = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
SITE = "import sysconfig; print(sysconfig.get_path('purelib'))"


def install(wish: Wish, into: Path | None = None, *, anew: bool = False) -> Environment:
    """Make the environment, or find that it is there; blocks, uv's own lines go to the terminal.

    `anew` makes it again with what is newest now. Raises ConfigError where uv is missing or cannot make it, or where
    the folder holds something else.
    """
    recipe = recipe_of(wish.engine)
    wanted = requirement(wish)
    folder = (into or root() / wish.engine).expanduser().absolute()
    if not anew and (there := read(folder)) is not None and _suffices(there, wish, wanted):
        return there
    _take(folder)
    environ = uv_environment(os.environ)
    wheels = has_torch(recipe, environ.get("UV_FIND_LINKS", ""))
    for step in steps(wish, folder, wheels):
        for name, text in step.files.items():
            (folder / name).write_text(text)
        _run(step.what, step.argv, environ, wish)
    python = str(folder / "bin" / "python")
    version = _ask(python, VERSION, wish.engine)
    if recipe.twin:
        write_twin(Path(_ask(python, SITE)), recipe, version)
    environment = Environment(wish.engine, version, str(folder), str(folder / LOCK))
    write(environment)
    (folder / MAKING).unlink()
    return environment


def uv_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Ours for uv: a folder of wheels that pip is told of is one for uv too; our own environment is not meant."""
    environ = {name: value for name, value in ours.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    if "UV_FIND_LINKS" not in environ and environ.get("PIP_FIND_LINKS"):
        environ["UV_FIND_LINKS"] = ",".join(environ["PIP_FIND_LINKS"].split())
    return environ


def has_torch(recipe: Recipe, find_links: str) -> bool:
    """Whether a folder of wheels holds the torch that a recipe pins, built for the CPU."""
    pins = [line.removeprefix("torch==") for line in recipe.overrides if line.startswith("torch==")]
    folders = [folder for folder in find_links.split(",") if folder and "://" not in folder]
    return any(
        glob.glob(f"{glob.escape(folder)}/torch-{pin}+{recipe.torch}-*.whl") for pin in pins for folder in folders
    )


def write_twin(site: Path, recipe: Recipe, version: str) -> None:
    """Tell the engine its version under the name by which it asks for it, and that it was built for the CPU."""
    folder = site / f"{recipe.twin}-{version}+{recipe.torch}.dist-info"
    folder.mkdir(exist_ok=True)
    lines = ("Metadata-Version: 2.1", f"Name: {recipe.twin}", f"Version: {version}+{recipe.torch}")
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    (folder / "INSTALLER").write_text("reflash\n")


def _suffices(there: Environment, wish: Wish, wanted: str) -> bool:
    if there.engine != wish.engine or not Path(there.python).exists():
        return False
    _, relation, version = wanted.partition("==") if "==" in wanted else wanted.partition(">=")
    have, need = numbers(there.version), numbers(version)
    return have == need if relation == "==" else have >= need


def _take(folder: Path) -> None:
    """Make the folder ours and empty; one that holds something else is left as it is."""
    if folder.exists() and any(folder.iterdir()) and read(folder) is None and not (folder / MAKING).exists():
        raise ConfigError(f"engines install: {folder} holds something else; name a new folder with --into")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MAKING).touch()
    for old in folder.iterdir():
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        elif old.name != MAKING:
            old.unlink()


def _run(what: str, argv: tuple[str, ...], environ: Mapping[str, str], wish: Wish) -> None:
    uv = shutil.which("uv")
    if uv is None:
        raise ConfigError("engines install: uv is not there; `pip install uv` brings it")
    # From the file system's root: uv takes settings from a project that it finds above.
    answer = subprocess.run([uv, *argv], env=environ, cwd="/", check=False)
    if answer.returncode != 0:
        raise ConfigError(
            f"engines install: uv could not make {what} of {wish.engine} (its words are above); where torch's own "
            "index cannot be reached, `--torch pypi` takes torch from the package index"
        )


def _ask(python: str, program: str, *args: str) -> str:
    answer = subprocess.run([python, "-I", "-c", program, *args], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise ConfigError(f"engines install: {python} does not run: {answer.stderr.strip()[-300:]}")
    return answer.stdout.strip()
