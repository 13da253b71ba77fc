"""`pkg://package/file` names a file inside an installed package, without importing the package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from reflash.errors import ConfigError

SCHEME = "pkg://"


def local_path(name: str) -> Path:
    """The path that `name` means; raises ConfigError where a named package or file is absent."""
    if not name.startswith(SCHEME):
        return Path(name).expanduser()
    package, _, inside = name.removeprefix(SCHEME).partition("/")
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise ConfigError(f"{name}: no package {package} is installed; `uv add {package.replace('_', '-')}` brings it")
    path = Path(spec.origin).parent / inside
    if not path.exists():
        raise ConfigError(f"{name}: the package {package} holds no file {inside}")
    return path
