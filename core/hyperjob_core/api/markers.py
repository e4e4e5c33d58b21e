"""The markers of the CRD generator: list types, CEL rules, formats.

They are for `Field(json_schema_extra=…)` and annotations, and do not affect parsing.
"""

from typing import Annotated, Final

from pydantic import Field
from pydantic.config import JsonDict

from hyperjob_core.api.meta import Object

SUBDOMAIN_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL_PATTERN: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$"
)
"""The form of a quantity; unlike controller-gen's it has no fractional exponents, which Kubernetes
does not read."""

POD_TEMPLATE: Final = "PodTemplateSpec"
CLAIM: Final = "PersistentVolumeClaimSpec"


def list_map(*keys: str) -> JsonDict:
    """Mark a list of type `map`, whose items are identified by these fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def atomic_list() -> JsonDict:
    """Mark a list of type `atomic`, which is replaced as a whole."""
    return {"x-kubernetes-list-type": "atomic"}


def rules(*pairs: tuple[str, str]) -> JsonDict:
    """Mark a type with CEL rules, given as (rule, message)."""
    return {"x-kubernetes-validations": [{"rule": r, "message": m} for r, m in pairs]}


def kubernetes_type(name: str) -> JsonDict:
    """Mark a field whose schema is a type of Kubernetes' core API."""
    return {"x-core-type": name}


Duration = Annotated[str, Field(json_schema_extra={"format": "duration"})]
"""A duration in Go's format, such as `1h30m`."""

PodTemplate = Annotated[Object, Field(json_schema_extra=kubernetes_type(POD_TEMPLATE))]
VolumeClaim = Annotated[Object, Field(json_schema_extra=kubernetes_type(CLAIM))]
Quantity = Annotated[
    object,
    Field(json_schema_extra={"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN}),
]
"""An amount of a resource, a number or a text."""
