"""Request bodies to objects: JSON, YAML or protobuf, with duplicate fields found.

Only decoding: what a field means is not checked here.
"""

import json
from collections.abc import Sequence

import orjson
import yaml

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.transport import protobuf

_READABLE = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_GO_STRUCT = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string'
    ' "json:\\"kind,omitempty\\"" }'
)
_GO_NAMES = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}
_HEX_LIMIT = 512


def media_type(content_type: str) -> str:
    """Strip a content type's parameters."""
    return content_type.partition(";")[0].strip().lower()


def read_object(body: bytes, content_type: str, info: ResourceInfo) -> tuple[Object, list[str]]:
    """Decode one object of a resource; also name the fields that it gives twice."""
    media = media_type(content_type) or "application/json"
    if media == "application/vnd.kubernetes.protobuf":
        if info.custom:
            raise errors.unsupported_media_type(_READABLE)
        return protobuf.decode(body), []
    if media not in _READABLE:
        raise errors.unsupported_media_type(_READABLE)
    value, duplicates = load(body, yaml_allowed=media == "application/yaml", kind=info.kind)
    if not isinstance(value, dict):
        shown = _GO_NAMES.get(type(value), "null")
        why = f"json: cannot unmarshal {shown} into Go value of type {_GO_STRUCT}"
        raise _unrecognized(info.kind, why, body)
    return value, duplicates


def load(body: bytes, *, yaml_allowed: bool, kind: str) -> tuple[Json, list[str]]:
    """Decode JSON (or YAML) and list duplicate fields by their path."""
    if not body:
        raise _unrecognized(kind, "unexpected end of JSON input", body)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if yaml_allowed:
            return _load_yaml(body), []
        raise _unrecognized(kind, str(error), body) from None
    if len(orjson.dumps(value)) == len(body):
        return value, []  # compact and nothing lost: there was no duplicate
    found: list[tuple[str, ...]] = []
    _find_duplicates(json.loads(body, object_pairs_hook=_Pairs), (), found)
    return value, [f'duplicate field "{".".join(path)}"' for path in found]


class _Pairs(list[tuple[str, Json]]):
    """A JSON object as its members, so that repeated ones stay visible."""


def _find_duplicates(value: Json, path: tuple[str, ...], found: list[tuple[str, ...]]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            here = (*path, key)
            if key in seen and here not in found:
                found.append(here)
            seen.add(key)
            _find_duplicates(item, here, found)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            at = (*path[:-1], f"{path[-1]}[{position}]") if path else (f"[{position}]",)
            _find_duplicates(item, at, found)


def _load_yaml(body: bytes) -> Json:
    try:
        loaded = yaml.load(body, Loader=_Loader)  # noqa: S506  a safe loader without timestamps
        return orjson.loads(orjson.dumps(loaded, option=orjson.OPT_NON_STR_KEYS))
    except (yaml.YAMLError, TypeError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"error decoding YAML: {error}") from None


class _Loader(yaml.CSafeLoader):
    """A safe loader that leaves times as text, as JSON would."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _unrecognized(kind: str, why: str, body: bytes) -> errors.ApiError:
    shown = body.hex()[:_HEX_LIMIT] or "<empty>"
    return errors.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind;"
        f" json parse error: {why} ({shown})"
    )


def require_type(obj: Object, info: ResourceInfo, body: bytes) -> None:
    """Check kind and apiVersion of a body; built-in kinds may leave both out."""
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if info.custom:
        for key, value in (("Kind", kind), ("apiVersion", version)):
            if not value:
                text = body.decode(errors="replace")
                raise errors.bad_request(f"Object '{key}' is missing in '{text}'")
    if version and version != info.api_version:
        raise errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version"
            f" ({info.api_version})"
        )
    if not info.custom:
        if kind and kind != info.kind:
            raise errors.bad_request(
                f'{kind} in version "{info.version}" cannot be handled as a {info.kind}: converting'
                f" ({kind}) to ({info.kind}): unknown conversion"
            )
        obj["kind"], obj["apiVersion"] = info.kind, info.api_version


def strict_error(info: ResourceInfo, problems: Sequence[str]) -> errors.ApiError:
    """Refuse a body for its unknown and duplicate fields."""
    return errors.bad_request(
        f'{info.kind} in version "{info.version}" cannot be handled as a {info.kind}: strict'
        f" decoding error: {', '.join(problems)}"
    )
