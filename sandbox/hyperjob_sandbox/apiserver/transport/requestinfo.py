"""What a request asks for, read from its method, path, query and Accept header.

The server writes JSON only, which clients that prefer protobuf accept too.

Paths: `/api/v1[/namespaces/NS]/RESOURCE[/NAME[/SUBRESOURCE]]` and the same below
`/apis/GROUP/VERSION`.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal
from urllib.parse import parse_qsl, unquote

from hyperjob_sandbox.apiserver import errors

_METHOD_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_TRUE = frozenset({"1", "true", "t", "T", "TRUE", "True"})


@dataclass(slots=True)
class RequestInfo:
    """A parsed request line; `verb` is Kubernetes' verb, empty when the path is no resource.

    `pairs` is the whole query, where names may be there several times.
    `rest` is what a path says beyond the subresource, as a proxied one does.
    """

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    verb: str = ""

    def flag(self, name: str) -> bool:
        """Read a boolean query parameter as the real server does."""
        return self.query.get(name, "") in _TRUE

    def number(self, name: str) -> int | None:
        """Read a query parameter that is a number, None where it is absent; raise 400."""
        text = self.query.get(name)
        if text and not (text.isascii() and text.isdigit()):
            raise errors.bad_request(f"{name} must be a number, not {text!r}")
        return int(text) if text else None

    @property
    def dry_run(self) -> bool:
        """Tell whether nothing may be stored."""
        return bool(self.query.get("dryRun"))


def parse(method: str, target: str) -> RequestInfo:
    """Parse a request line's method and target (path and query, percent-encoded)."""
    path, _, query = target.partition("?")
    if "%" in path:
        path = unquote(path)
    info = RequestInfo(method, path)
    if query:
        # The first value wins, as in Go's url.Values.Get.
        info.pairs = parse_qsl(query, keep_blank_values=True)
        for key, value in info.pairs:
            info.query.setdefault(key, value)
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        info.version = parts[1]
        rest = parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        info.group, info.version = parts[1], parts[2]
        rest = parts[3:]
    else:
        return info
    _read_resource(info, rest)
    return info


def _read_resource(info: RequestInfo, parts: list[str]) -> None:
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in ("status", "finalize"):
        info.namespace = parts[1]
        parts = parts[2:]
    info.resource = parts[0]
    if len(parts) > 1:
        info.name = parts[1]
    if len(parts) > 2:
        info.subresource, info.rest = parts[2], "/".join(parts[3:])
    if info.resource == "namespaces" and info.name:
        info.namespace = info.name
    if info.method in ("GET", "HEAD"):
        if info.name:
            info.verb = "get"
        else:
            info.verb = "watch" if info.flag("watch") else "list"
    elif info.method == "DELETE" and not info.name:
        info.verb = "deletecollection"
    else:
        info.verb = _METHOD_VERBS.get(info.method, "")


Form = Literal["object", "Table", "PartialObjectMetadata"]
_JSON = frozenset({"application/json", "application/*", "*/*", "application/yaml"})
_PROTOBUF = "application/vnd.kubernetes.protobuf"


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Form:
    """Choose the first form of an Accept header that the server can write; raise 406."""
    for clause in (accept or "*/*").split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media in _JSON:
            match next((each[3:] for each in parameters if each.startswith("as=")), ""):
                case "":
                    return "object"
                case "Table":
                    return "Table"
                case "PartialObjectMetadata" | "PartialObjectMetadataList":
                    return "PartialObjectMetadata"
    if _PROTOBUF in accept:
        return "object"
    why = "only the following media types are accepted: application/json"
    raise errors.failed(406, "NotAcceptable", why)
