"""Addresses that stand in the manifest, in logs and in errors, where a password or a key must not."""

from __future__ import annotations

import re

_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)(.*)", re.DOTALL)
_PORT = re.compile(r"[^:]*|\[[^\]]*\](:\d*)?|[^:]*:\d*")
_CONTAINER_BEFORE_AT = ("abfs://", "abfss://")  # Azure writes container@account
_FROM_ENVIRONMENT = (
    "give credentials in the environment variables of the cloud (such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY)"
)


def without_user(url: str) -> str:
    """A path or URL that names no user; raises ValueError, which does not repeat it, where a URL does.

    A secret may hold a slash, after which its `@` is no longer in the host: what follows a colon must be a port.
    """
    found = _AUTHORITY.fullmatch(url)
    if found is None:
        return url
    host = found[1]
    if url.lower().startswith(_CONTAINER_BEFORE_AT):
        host = host.rpartition("@")[2] if ":" not in host else host
    if "@" in host or not _PORT.fullmatch(host):
        raise ValueError(f"the URL names a user or a password: write it without, and {_FROM_ENVIRONMENT}")
    return url


def without_query(url: str) -> str:
    """A path or URL of an object store without a query; raises ValueError, which does not repeat it, where it has one.

    A query may hold a signature, and an object store reads none of it.
    """
    found = _AUTHORITY.fullmatch(url)
    if found and not url.startswith("file://") and re.search("[?#]", found[2]):
        raise ValueError(f"the URL has a query or a fragment: write it without, and {_FROM_ENVIRONMENT}")
    return url
