"""Object stores by URL: which can hold a run, how long one is waited for, and what is said of one that fails.

Credentials come from the environment, by the names that each cloud's own tools use.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import HTTPStore, MemoryStore, ObjectStore, from_url

from reflash.errors import ConfigError
from reflash.printable import printable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

# A store that lacks an operation says so with Python's own error.
FAULTS = (BaseError, OSError, NotImplementedError)
REMEDY = "Give a folder, or the URL of an object store: s3://, gs:// or az://"
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION (and AWS_ENDPOINT_URL where it is not Amazon's)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_CLIENT: ClientConfig = {
    "connect_timeout": "10s",
    "read_timeout": "60s",
    "timeout": "10m",  # a part may be 100 MB
    "allow_http": True,  # where AWS_ENDPOINT_URL says so
}
_RETRY: RetryConfig = {"max_retries": 10, "retry_timeout": timedelta(minutes=3)}


def is_remote(url: str) -> bool:
    """Whether a name is that of an object store, and no path."""
    return "://" in url and not url.startswith(("file://", "pkg://"))


def open_remote(url: str) -> ObjectStore:
    """The object store at a URL. Raises ConfigError where it is none in which a run can lie."""
    try:
        store = from_url(url, client_options=_CLIENT, retry_config=_RETRY)
    except (BaseError, ValueError) as error:
        said = without_password(str(error).split("\n", 1)[0])  # it may repeat the URL
        raise ConfigError(f"{without_password(url)}: no store that can be opened ({said}). {REMEDY}") from error
    if isinstance(store, HTTPStore):
        raise ConfigError(f"{without_password(url)}: a run cannot be written to a web server. {REMEDY}")
    if isinstance(store, MemoryStore):  # each worker process would have one of its own
        raise ConfigError(f"{without_password(url)}: a run must outlive its process. {REMEDY}")
    return store


def reason(error: Exception, url: str = "") -> str:
    """Why a store failed, in one line, with what a person can do where it lets nobody in."""
    said = printable(without_password(str(error).split("\n", 1)[0]), 500)
    refused = isinstance(error, PermissionDeniedError | UnauthenticatedError) or "169.254.169.254" in said
    names = CREDENTIALS.get(url.split("://", 1)[0].rstrip("a"))
    return f"{said}. Give credentials in the environment: {names}" if refused and names else said


def without_password(url: str) -> str:
    """A path or URL as it may be printed: one line, not endless, no password."""
    return printable(re.sub(r"(?<=://)[^/@]*@", "…@", url), 1000)
