"""Which form of answer a client asks for in its Accept header.

The server writes JSON only; a client that prefers protobuf gets JSON, which is what its Accept
header also allows.
"""

from functools import lru_cache
from typing import Literal

from hyperjob_sandbox.apiserver import errors

Form = Literal["object", "Table", "PartialObjectMetadata"]
_JSON = frozenset({"application/json", "application/*", "*/*", "application/yaml"})
_PROTOBUF = "application/vnd.kubernetes.protobuf"


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Form:
    """Choose the first form of an Accept header that the server can write; raise 406."""
    for media, wanted in _clauses(accept or "*/*"):
        if media in _JSON:
            match wanted.get("as", ""):
                case "":
                    return "object"
                case "Table":
                    return "Table"
                case "PartialObjectMetadata" | "PartialObjectMetadataList":
                    return "PartialObjectMetadata"
    if _PROTOBUF in accept:
        return "object"
    raise errors.not_acceptable(("application/json", "application/yaml", _PROTOBUF))


@lru_cache(maxsize=64)
def wants_aggregated_discovery(accept: str) -> bool:
    """Tell whether a client prefers aggregated discovery (v2)."""
    for media, wanted in _clauses(accept):
        if wanted.get("as") != "APIGroupDiscoveryList":
            if media in _JSON:
                return False
        elif media == "application/json" and wanted.get("v") == "v2":
            return True
    return False


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Split a header into media types with their parameters."""
    found: list[tuple[str, dict[str, str]]] = []
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        found.append((media, dict(part.split("=", 1) for part in parameters if "=" in part)))
    return found
