"""What an interpreter's environment holds. The audited interpreter runs this file: nothing but the standard library.

Writes one line of JSON. Names of packages are normalised; no pip is needed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Look, and write it down."""
    sys.stdout.write(json.dumps(found(sys.argv[1:])) + "\n")


def found(names: list[str]) -> dict[str, Any]:
    """Look at everything, import none of it but `packaging`; `names` are distributions whose requirements count."""
    packages: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            packages.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution.version)
    return {
        "version": ".".join(map(str, sys.version_info[:3])),
        "prefix": sys.prefix,
        "made_by": _made_by(),
        "has_pip": importlib.util.find_spec("pip") is not None,
        "packages": packages,
        "unmet": _unmet(packages, names),
        "ptxas": _ptxas(),
        "torch": _torch(packages.get("torch")),
        "folders": [path for path in sys.path if path.endswith("-packages") and os.path.isdir(path)],
    }


def _made_by() -> str:
    """`uv 0.9.0`, `virtualenv 20.1`, or "venv": as pyvenv.cfg says."""
    try:
        lines = (Path(sys.prefix) / "pyvenv.cfg").read_text().splitlines()
    except OSError:
        return ""
    split = (line.partition("=") for line in lines)
    told = {name.strip(): value.strip() for name, _, value in split}
    for tool in ("uv", "virtualenv"):
        if tool in told:
            return f"{tool} {told[tool]}"
    return "venv"


def _unmet(packages: dict[str, str], names: list[str]) -> list[str] | None:
    """Requirements of the named distributions that do not hold; None without `packaging`."""
    try:
        from packaging.requirements import InvalidRequirement, Requirement
    except ImportError:
        return None
    unmet = []
    for name in names:
        if name not in packages:
            continue
        for text in importlib.metadata.requires(name) or ():
            try:
                need = Requirement(text)
            except InvalidRequirement:
                continue
            if need.marker is not None and not need.marker.evaluate({"extra": ""}):
                continue
            have = packages.get(re.sub(r"[-_.]+", "-", need.name).lower())
            if have is None or not need.specifier.contains(have, prereleases=True):
                unmet.append(f"{name} needs {need.name}{need.specifier}, there is {have or 'none'}")
    return unmet


def _folder(module: str) -> Path | None:
    spec = importlib.util.find_spec(module)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def _ptxas() -> bool | None:
    folder = _folder("triton")
    if folder is None:
        return None
    asked = os.environ.get("TRITON_PTXAS_PATH")
    return os.access(asked or folder / "backends" / "nvidia" / "bin" / "ptxas", os.X_OK)


def _torch(version: str | None) -> dict[str, Any] | None:
    """Its build, by the file that says so: importing torch takes seconds."""
    folder = _folder("torch")
    if folder is None:
        return None
    try:
        told = (folder / "version.py").read_text()
    except OSError:
        told = ""
    cuda = re.search(r"^cuda(?::[^=]*)? = '([\d.]+)'", told, re.MULTILINE)
    full = re.search(r"^__version__ = '([^']+)'", told, re.MULTILINE)
    return {"version": full[1] if full else version or "", "cuda": cuda[1] if cuda else None}


if __name__ == "__main__":
    main()
