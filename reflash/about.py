"""What this is, as it is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def our_version() -> str:
    """Reflash's version; "not installed" where it runs from a folder of sources."""
    try:
        return version("reflash")
    except PackageNotFoundError:
        return "not installed"
