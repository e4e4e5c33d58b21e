"""Request bodies to objects: JSON, YAML or protobuf."""

from collections.abc import Sequence

import orjson
import yaml

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.jsonvalue import Json, json_type
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.transport import protobuf

_JSON = "application/json"
_YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_READABLE = (_JSON, _YAML, PROTOBUF)
_GO_STRUCT = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string'
    ' "json:\\"kind,omitempty\\"" }'
)
_HEX_LIMIT = 512


def media_type(content_type: str) -> str:
    """Strip a content type's parameters."""
    return content_type.partition(";")[0].strip().lower()


def read_object(body: bytes, content_type: str, info: ResourceInfo) -> Object:
    """Decode one object of a resource."""
    media = media_type(content_type) or _JSON
    if media == PROTOBUF and not info.custom:
        return protobuf.decode(body)
    if media not in (_JSON, _YAML):
        raise errors.unsupported_media_type(_READABLE)
    value = load(body, yaml_allowed=media == _YAML, kind=info.kind)
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {json_type(value)} into Go value of type {_GO_STRUCT}"
        raise _unrecognized(info.kind, why, body)
    return value


def load(body: bytes, *, yaml_allowed: bool, kind: str) -> Json:
    """Decode JSON, or YAML too."""
    if not body:
        raise _unrecognized(kind, "unexpected end of JSON input", body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if yaml_allowed:
            return _load_yaml(body)
        raise _unrecognized(kind, str(error), body) from None


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
    """Refuse a body for its unknown fields."""
    return errors.bad_request(
        f'{info.kind} in version "{info.version}" cannot be handled as a {info.kind}: strict'
        f" decoding error: {', '.join(problems)}"
    )
