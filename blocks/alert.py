"""Where alerts go: a block of Prefect's own, since the server sends them and knows no others."""

from __future__ import annotations

from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.types import SecretDict
from pydantic import AnyHttpUrl, TypeAdapter

NAME = "reflash-alert"


def webhook(url: str) -> CustomWebhookNotificationBlock:
    """A block that posts `{"text", "subject", "body"}` to a URL, which may hold a key and is kept secret.

    Raises ValueError where it is no URL.
    """
    TypeAdapter(AnyHttpUrl).validate_python(url)
    said = {"text": "{{subject}}\n{{body}}", "subject": "{{subject}}", "body": "{{body}}"}
    return CustomWebhookNotificationBlock(
        name=NAME, url="{{address}}", json_data=said, secrets=SecretDict({"address": url})
    )
