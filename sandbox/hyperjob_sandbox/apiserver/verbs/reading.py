"""GET of one object and of lists, with paging and every representation."""

import base64
from collections.abc import Sequence

import orjson

from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.core.selection import selection
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Expired, Stored
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, json_reply
from hyperjob_sandbox.apiserver.transport.encode import (
    dump,
    encode_item,
    encode_stored,
    partial_metadata,
    to_version,
)
from hyperjob_sandbox.apiserver.transport.tables import list_meta, table


def get(core: Core, call: Call) -> Reply:
    """Answer with one object."""
    stored = core.find(call.resource, call.info.namespace, call.info.name)
    if stored is None:
        raise call.not_found()
    return object_reply(stored, call)


def object_reply(stored: Stored, call: Call, *, code: int = 200) -> Reply:
    """Answer with a stored object in the representation that the client asked for."""
    form = call.representation
    resource = call.resource
    if form.form == "Table":
        meta = {"resourceVersion": str(stored.revision)}
        document = table(
            [to_version(stored.obj, resource)],
            resource,
            list_meta=meta,
            include=call.info.query.get("includeObject") or "Metadata",
            version=form.version,
        )
        return json_reply(document, code=code)
    if form.form == "PartialObjectMetadata":
        return json_reply(partial_metadata(stored.obj), code=code)
    return Reply(code, encode_stored(stored, resource))


def list_objects(core: Core, call: Call) -> Reply:
    """Answer with a list, or one page of it."""
    info, resource = call.info, call.resource
    chosen = selection(info, resource)
    form = call.representation
    collection = core.collection(resource)
    namespace = info.namespace if resource.namespaced and info.namespace else None
    revision = core.store.revision
    _check_version(info.query, revision)
    token = info.query.get("continue", "")
    start: tuple[str, str] | None = None
    exact = _exact_version(info.query)
    try:
        if token:
            revision, start = _read_token(token)
        elif exact:
            revision = exact
        found: Sequence[Stored] = (
            collection.at(revision, namespace)
            if token or exact
            else list(collection.select(namespace))
        )
    except Expired:
        raise _expired_token() if token else _expired_version() from None
    if chosen:
        found = [stored for stored in found if chosen.matches(stored, resource)]
    if start is not None:
        found = [stored for stored in found if stored.key > start]
    limit = _limit(info.query)
    remaining: int | None = None
    token = ""
    if limit and len(found) > limit:
        remaining = None if chosen else len(found) - limit
        found = found[:limit]
        token = _write_token(revision, found[-1].key)
    meta = list_meta(revision, token=token, remaining=remaining)
    if form.form == "Table":
        objects = [to_version(stored.obj, resource) for stored in found]
        include = info.query.get("includeObject") or "Metadata"
        return json_reply(
            table(objects, resource, list_meta=meta, include=include, version=form.version)
        )
    if form.form == "PartialObjectMetadata":
        document = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": meta,
            "items": [partial_metadata(stored.obj) for stored in found],
        }
        return json_reply(document)
    return Reply(200, list_body(found, resource, meta))


def list_body(found: Sequence[Stored], resource: ResourceInfo, meta: dict[str, Json]) -> bytes:
    """Encode a list from the cached encodings of its items."""
    items = b"[" + b",".join([encode_item(stored, resource) for stored in found]) + b"]"
    kind, version = dump(resource.lists), dump(resource.api_version)
    if resource.custom:
        meta = dict(sorted({"continue": "", **meta}.items()))
        return b'{"apiVersion":%s,"items":%s,"kind":%s,"metadata":%s}' % (
            version,
            items,
            kind,
            dump(meta),
        )
    return b'{"kind":%s,"apiVersion":%s,"metadata":%s,"items":%s}' % (
        kind,
        version,
        dump(meta),
        items,
    )


def _limit(query: dict[str, str]) -> int:
    text = query.get("limit", "")
    try:
        return max(int(text), 0) if text else 0
    except ValueError:
        return 0


def _exact_version(query: dict[str, str]) -> int:
    """Give the one version that a list must show, or 0 where any recent one will do."""
    text = query.get("resourceVersion", "")
    match = query.get("resourceVersionMatch", "")
    exact = match == "Exact" or (not match and _limit(query) > 0)
    return parse_version(text) if exact and text else 0


def _check_version(query: dict[str, str], current: int) -> None:
    text = query.get("resourceVersion", "")
    match = query.get("resourceVersionMatch", "")
    if match and not text:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise _invalid_option("resourceVersionMatch", f"Forbidden: {why}")
    if text and query.get("continue") and text != "0":
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    if not text:
        return
    wanted = parse_version(text)
    if wanted > current:
        message = f"Too large resource version: {wanted}, current: {current}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        status = errors.failure(504, "Timeout", message, causes=[cause], retry_after=1)
        raise errors.ApiError(status)


def _invalid_option(name: str, why: str) -> errors.ApiError:
    message = f'ListOptions.meta.k8s.io "" is invalid: {name}: {why}'
    cause = {"reason": "FieldValueForbidden", "message": why, "field": name}
    return errors.ApiError(
        errors.failure(
            422, "Invalid", message, group="meta.k8s.io", kind="ListOptions", causes=[cause]
        )
    )


def parse_version(text: str) -> int:
    """Read a resourceVersion; 500 for what is no number, as the real server answers."""
    if text.isascii() and text.isdigit():
        return int(text)
    raise errors.plain_internal(
        f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid'
        " syntax"
    )


def _write_token(revision: int, key: tuple[str, str]) -> str:
    value = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": "/".join(key) + "\0"})
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        value = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = str(value["start"]).removesuffix("\0").partition("/")
        return int(value["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError):
        raise errors.bad_request("continue key is not valid: malformed token") from None


def _expired_token() -> errors.ApiError:
    return errors.expired(
        "The provided continue parameter is too old to display a consistent list result. You can"
        " start a new list without the continue parameter."
    )


def _expired_version() -> errors.ApiError:
    return errors.expired("The resourceVersion for the provided list is too old.")
