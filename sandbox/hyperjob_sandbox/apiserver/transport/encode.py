"""Objects to bytes, in the order in which the real server writes them.

Custom resources are written with sorted keys (Go maps), built-in kinds in the order of their Go
structs as far as something reads it: kind, apiVersion, metadata, then the rest as it came.
"""

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Stored
from hyperjob_sandbox.apiserver.transport import coreevents

META_ORDER = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("labels", "annotations", "ownerReferences", "finalizers", "managedFields"),
)


def dump(value: Json) -> bytes:
    """Encode a value as it is."""
    return orjson.dumps(value)


def ordered_meta(meta: Object) -> Object:
    """Copy metadata into the order of its Go struct, maps sorted."""
    result = {key: meta[key] for key in META_ORDER if key in meta}
    for key in ("labels", "annotations"):
        if key in result:
            result[key] = dict(sorted(result[key].items()))
    return result


def builtin_order(obj: Object, info: ResourceInfo) -> Object:
    """Copy a built-in object into the order of its Go struct."""
    head = {"kind": info.kind, "apiVersion": info.api_version}
    result: Object = {**head, "metadata": ordered_meta(obj["metadata"])}
    result.update((key, value) for key, value in obj.items() if key not in result)
    return result


def to_version(obj: Object, info: ResourceInfo) -> Object:
    """Give a stored object as its group serves it; only an Event has two forms."""
    return coreevents.read(obj, info.group) if info.storage == coreevents.EVENTS else obj


def to_storage(obj: Object, info: ResourceInfo) -> Object:
    """Give a served object in its stored form."""
    return coreevents.write(obj, info.group) if info.storage == coreevents.EVENTS else obj


def encode(obj: Object, info: ResourceInfo) -> bytes:
    """Encode one stored object."""
    if info.custom:
        return orjson.dumps(to_version(obj, info), option=orjson.OPT_SORT_KEYS)
    return orjson.dumps(builtin_order(to_version(obj, info), info))


def encode_stored(stored: Stored, info: ResourceInfo) -> bytes:
    """Encode a stored object, once for each version."""
    version = info.api_version
    found = stored.encoded.get(version)
    if found is None:
        found = stored.encoded[version] = encode(stored.obj, info)
    return found


def encode_item(stored: Stored, info: ResourceInfo) -> bytes:
    """Encode a stored object as an item of a list; built-in items carry no kind there."""
    found = encode_stored(stored, info)
    if info.custom:
        return found
    return b"{" + found[found.index(b'"metadata":') :]


def watch_line(type_: str, body: bytes) -> bytes:
    """Frame one watch event."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), body)
