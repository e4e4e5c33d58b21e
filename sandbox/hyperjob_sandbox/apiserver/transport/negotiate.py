"""Which representation a client asks for in its Accept header.

The server writes JSON only; a client that prefers protobuf gets JSON, which is what its Accept
header also allows.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from hyperjob_sandbox.apiserver import errors

Form = Literal["object", "Table", "PartialObjectMetadata"]
_JSON = frozenset({"application/json", "application/*", "*/*", "application/yaml"})
_OFFERED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


@dataclass(frozen=True, slots=True)
class Representation:
    """How to answer: whole objects, a table, or metadata only; `table_version` is v1 or v1beta1."""

    form: Form = "object"
    version: str = "v1"
    yaml: bool = False


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Representation:
    """Choose the first representation of an Accept header that the server can write."""
    if not accept:
        return Representation()
    protobuf = False
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        if media == "application/vnd.kubernetes.protobuf":
            protobuf = True
        if media not in _JSON:
            continue
        given = dict(part.split("=", 1) for part in parameters if "=" in part)
        wanted = given.get("as", "")
        if wanted == "Table" and given.get("g") == "meta.k8s.io":
            return Representation("Table", given.get("v", "v1"))
        if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return Representation("PartialObjectMetadata")
        if not wanted:
            return Representation(yaml=media == "application/yaml")
    if protobuf:
        return Representation()
    raise errors.not_acceptable(_OFFERED)


@lru_cache(maxsize=64)
def wants_aggregated_discovery(accept: str) -> str:
    """Give the version of aggregated discovery that a client prefers, or an empty text."""
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        given = dict(part.split("=", 1) for part in parameters if "=" in part)
        if given.get("as") == "APIGroupDiscoveryList":
            if media == "application/json" and given.get("g") == "apidiscovery.k8s.io":
                return given.get("v", "")
        elif media in _JSON:
            return ""
    return ""
