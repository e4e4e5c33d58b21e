"""The base class of all API types, and the common types: ObjectMeta, OwnerReference, Condition.

A model keeps fields that it does not know, and sets no default that the API server did not set.
"""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from hyperjob_core.api.meta import Object

# Kubernetes never takes "3", true or 2.0 for an integer, so neither do the models.
Int32 = Annotated[
    int,
    Field(strict=True, ge=-(2**31), le=2**31 - 1, json_schema_extra={"format": "int32"}),
]
Int64 = Annotated[
    int,
    Field(strict=True, ge=-(2**63), le=2**63 - 1, json_schema_extra={"format": "int64"}),
]
Count = Annotated[Int32, Field(ge=0)]
Bool = Annotated[bool, Field(strict=True)]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""An RFC 3339 time in UTC with seconds, as the API server prints it."""


class Model(BaseModel):
    """The base of API types: camelCase in JSON, snake_case in Python, with unknown fields kept."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        extra="allow",
        frozen=True,
    )

    @classmethod
    def from_object(cls, raw: Object) -> Self:
        """Parse an object; raises pydantic.ValidationError for a value of another type."""
        return cls.model_validate(raw)

    def to_object(self) -> Object:
        """Return the object in JSON types, with all set fields that are not null."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


class OwnerReference(Model):
    """The object that owns another one in the same namespace."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: Bool | None = None
    block_owner_deletion: Bool | None = None


class ObjectMeta(Model):
    """The metadata that controllers read."""

    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Model):
    """One aspect of an object's state."""

    type: str = Field(
        description="Kind of the condition, in CamelCase.", min_length=1, max_length=316
    )
    status: str = Field(
        description="Status of the condition: True, False or Unknown.",
        json_schema_extra={"enum": ["True", "False", "Unknown"]},
    )
    observed_generation: Int64 | None = Field(
        default=None, description="Generation of the object for which the condition was set."
    )
    last_transition_time: Time | None = Field(
        default=None, description="When the status last changed."
    )
    reason: str = Field(
        default="", description="Reason of the status, one CamelCase word.", max_length=1024
    )
    message: str = Field(
        default="", description="Message about the reason, for people.", max_length=32768
    )
