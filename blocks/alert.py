"""Where alerts go: a block of Prefect's own, since the server sends them and knows no others."""

from __future__ import annotations

from urllib.parse import urlsplit

from prefect.blocks.notifications import CustomWebhookNotificationBlock, SlackWebhook
from prefect.types import SecretDict
from pydantic import AnyHttpUrl, SecretStr, TypeAdapter

NAME = "reflash-alert"
MAIL = ("mailto", "mailtos")


def alert(url: str) -> CustomWebhookNotificationBlock | SlackWebhook:
    """A block that tells a webhook or a mailbox. The URL may hold a key and is kept secret.

    Raises ValueError where it is none that something can be sent to.
    """
    return mail(url) if urlsplit(url).scheme in MAIL else webhook(url)


def webhook(url: str) -> CustomWebhookNotificationBlock:
    """A block that posts `{"text", "subject", "body"}` to a URL; raises ValueError where it is no URL."""
    TypeAdapter(AnyHttpUrl).validate_python(url)
    said = {"text": "{{subject}}\n{{body}}", "subject": "{{subject}}", "body": "{{body}}"}
    return CustomWebhookNotificationBlock(
        name=NAME, url="{{address}}", json_data=said, secrets=SecretDict({"address": url})
    )


def mail(url: str) -> SlackWebhook:
    """A block that mails by SMTP: `mailtos://USER:PASSWORD@HOST?from=NAME@HOST&to=NAME@HOST`; raises ValueError.

    Prefect has no block for SMTP, but what it takes for Slack hands any address that is not Slack's to Apprise, which
    reads this one.
    """
    from apprise import Apprise

    if not Apprise().add(url):
        raise ValueError("no mail can be sent to that URL")
    return SlackWebhook(url=SecretStr(url))
