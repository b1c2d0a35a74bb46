"""The part of a request for a build that brings its secrets; values never leave it but by name."""

import re
from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    WithJsonSchema,
    field_validator,
)
from pydantic.config import JsonDict

from builder_bridge.secret import MASKABLE, MAX_FILE_BYTES, MAX_NAME_CHARS, MAX_SECRETS, MAX_TEXT_CHARS, NAME

SecretName = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARS, pattern=rf"^{NAME.pattern}$")]
"""A Gradle property."""
_WRITE_ONLY = {"type": "string", "format": "password", "writeOnly": True}
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"
SecretText = Annotated[
    SecretStr,
    Field(max_length=MAX_TEXT_CHARS),
    WithJsonSchema({**_WRITE_ONLY, "maxLength": MAX_TEXT_CHARS, "pattern": MASKABLE}),
]
SecretBase64 = Annotated[
    SecretStr,
    Field(max_length=MAX_FILE_BYTES * 4 // 3),
    WithJsonSchema({**_WRITE_ONLY, "maxLength": MAX_FILE_BYTES * 4 // 3, "pattern": _BASE64}),
]


_NAMES_ONLY: JsonDict = {"additionalProperties": False, "propertyNames": {"maxLength": MAX_NAME_CHARS}}


class SecretFields(BaseModel):
    """Values, files and names of secrets, all of them Gradle properties of one build."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    secrets: dict[SecretName, SecretText] = Field(
        default={},
        max_length=MAX_SECRETS,
        description="Gradle properties whose values no log may show.",
        json_schema_extra=_NAMES_ONLY,
    )
    secret_files: dict[SecretName, SecretBase64] = Field(
        default={},
        max_length=MAX_SECRETS,
        description="Files in base64, such as a keystore; the Gradle property holds the path of each.",
        json_schema_extra=_NAMES_ONLY,
    )
    use_secrets: list[SecretName] = Field(
        default=[], max_length=MAX_SECRETS, description="Secrets that the service's settings name."
    )

    @field_validator("secret_files")
    @classmethod
    def _are_base64(cls, files: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, content in files.items():
            if not re.fullmatch(_BASE64, content.get_secret_value()):
                raise ValueError(f"the file {name} is no base64")
        return files
