"""The keys of an object store, saved once in the UI and named in runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from blocks.checked import Checked


class Store(Checked):
    """The keys of an object store, for runs whose folder is a URL: `s3://`, `gs://` or `az://`."""

    _block_type_name = "Reflash Store"
    _block_type_slug = "reflash-store"

    kind: Literal["s3", "gs", "az"] = Field(description="Amazon S3 and what speaks like it, Google Cloud, Azure.")
    account: str = Field(
        default="",
        description="S3: the access key's id. Azure: the storage account. Google: leave it empty.",
    )
    secret: SecretStr = Field(
        min_length=1,
        description="S3: the secret access key. Azure: the account's key. Google: the service account's key, as JSON.",
    )
    region: str = Field(default="", description="S3: the region, such as eu-central-1.")
    endpoint: str = Field(
        default="",
        pattern=r"^(https?://[^@?#\s]+)?$",
        description="S3: the server's URL where it is not Amazon's: http://10.0.0.5:9000.",
    )

    def environment(self) -> dict[str, str]:
        """As object store clients read it."""
        secret = self.secret.get_secret_value()
        if self.kind == "gs":
            return {"GOOGLE_SERVICE_ACCOUNT_KEY": secret}
        if self.kind == "az":
            return {"AZURE_STORAGE_ACCOUNT_NAME": self.account, "AZURE_STORAGE_ACCOUNT_KEY": secret}
        found = {"AWS_ACCESS_KEY_ID": self.account, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": self.region}
        found |= {"AWS_ENDPOINT_URL": self.endpoint}
        if self.endpoint.startswith("http://"):
            found["AWS_ALLOW_HTTP"] = "true"
        return {key: value for key, value in found.items() if value}
