"""GET of one object and of lists, with paging and every form of answer."""

import base64
from collections.abc import Sequence

import orjson

from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core, selection
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Stored
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, json_reply
from hyperjob_sandbox.apiserver.transport.encode import dump, encode_item, encode_stored
from hyperjob_sandbox.apiserver.transport.tables import partial_metadata, table


def get(core: Core, call: Call) -> Reply:
    """Answer with one object."""
    return object_reply(core.live(call), call)


def object_reply(stored: Stored, call: Call, *, code: int = 200) -> Reply:
    """Answer with a stored object in the form that the client asked for."""
    return Reply(code, encode_as(stored, call))


def encode_as(stored: Stored, call: Call, *, headers: bool = True) -> bytes:
    """Encode a stored object in the form that the client asked for."""
    match call.form:
        case "object":
            return encode_stored(stored, call.resource)
        case "PartialObjectMetadata":
            return dump(partial_metadata(stored.obj))
    meta = {"resourceVersion": stored.metadata["resourceVersion"]}
    return dump(table([stored], call, meta, headers=headers))


def list_objects(core: Core, call: Call) -> Reply:
    """Answer with a list, or one page of it.

    A later page shows the present, under the resourceVersion of the first: a watch from there on
    has the rest.
    """
    resource, query = call.resource, call.info.query
    revision, start = core.store.revision, None
    wanted = parse_version(query.get("resourceVersion") or "0")
    if wanted > revision:
        why = f"Too large resource version: {wanted}, current: {revision}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        raise errors.failed(504, "Timeout", why, causes=[cause], retryAfterSeconds=1)
    if token := query.get("continue", ""):
        revision, start = _read_token(token)
    found = [stored for stored in selected(core, call) if start is None or stored.key > start]
    meta: dict[str, Json] = {"resourceVersion": str(revision)}
    limit = call.info.number("limit") or len(found)
    if left := max(len(found) - limit, 0):
        found = found[:limit]
        meta["continue"] = _write_token(revision, found[-1].key)
        if not selection(call.info, resource):
            meta["remainingItemCount"] = left
    match call.form:
        case "Table":
            return json_reply(table(found, call, meta))
        case "PartialObjectMetadata":
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            items = [partial_metadata(stored.obj) for stored in found]
            return json_reply({**head, "metadata": meta, "items": items})
    return Reply(200, list_body(found, resource, meta))


def selected(core: Core, call: Call) -> list[Stored]:
    """Return the objects that the path and the selectors of a request select."""
    chosen = selection(call.info, call.resource)
    found = core.collection(call.resource).select(call.namespace)
    return [stored for stored in found if not chosen or chosen.matches(stored, call.resource)]


def list_body(found: Sequence[Stored], resource: ResourceInfo, meta: dict[str, Json]) -> bytes:
    """Encode a list from the cached encodings of its items."""
    parts = {
        "kind": dump(resource.lists),
        "apiVersion": dump(resource.api_version),
        "metadata": dump(meta),
        "items": b"[" + b",".join([encode_item(stored, resource) for stored in found]) + b"]",
    }
    if resource.custom:
        parts["metadata"] = dump(dict(sorted({"continue": "", **meta}.items())))
        parts = dict(sorted(parts.items()))
    return b"{" + b",".join(b'"%s":%s' % (key.encode(), parts[key]) for key in parts) + b"}"


def parse_version(text: str) -> int:
    """Read a resourceVersion; 500 for what is no number, as the real server answers."""
    if text.isascii() and text.isdigit():
        return int(text)
    why = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
    raise errors.failed(500, "", f"resourceVersion: {why}")


def _write_token(revision: int, key: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([revision, *key])).decode()


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        revision, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
    except ValueError:
        raise errors.bad_request("continue key is not valid: malformed token") from None
    return int(revision), (namespace, name)
