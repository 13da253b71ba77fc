"""A token of the Hugging Face Hub, saved once in the UI and named in runs."""

from __future__ import annotations

from pydantic import Field, SecretStr

from blocks.checked import Checked


class HubToken(Checked):
    """A token of the Hugging Face Hub, for sets and models that are not public."""

    _block_type_name = "Reflash Hub Token"
    _block_type_slug = "reflash-hub-token"

    token: SecretStr = Field(min_length=1, description="As made under Settings, Access Tokens; it begins with `hf_`.")

    def environment(self) -> dict[str, str]:
        """As the Hub's library reads it."""
        return {"HF_TOKEN": self.token.get_secret_value()}
