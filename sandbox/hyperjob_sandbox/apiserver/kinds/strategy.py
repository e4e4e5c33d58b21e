"""What the server itself does to an object on its way into the store.

Functions change the fresh object that they are given. They follow kube-apiserver's BeforeCreate and
BeforeUpdate and each kind's PrepareForCreate and PrepareForUpdate.
"""

import random
import uuid

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_GENERATED_PREFIX_LIMIT = 63 - _SUFFIX_LENGTH
_SYSTEM_META = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")
_TYPE = frozenset({"metadata", "apiVersion", "kind"})


def normalise_meta(obj: Object) -> Object:
    """Make sure that an object has a metadata map without empty collections; return the map."""
    meta = obj.get("metadata")
    given = meta.items() if isinstance(meta, dict) else ()
    obj["metadata"] = {key: value for key, value in given if value or key == "managedFields"}
    metadata: Object = obj["metadata"]
    return metadata


def before_create(obj: Object, resource: ResourceInfo) -> None:
    """Fill in what only the server decides: name suffix, uid, times, generation, no status."""
    meta = obj["metadata"]
    for key in _SYSTEM_META:
        meta.pop(key, None)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generated_name(meta["generateName"])
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = wire_now()
    if resource.custom or resource.generation:
        meta["generation"] = 1
    else:
        meta.pop("generation", None)
    if resource.has_status and resource.storage != ("", "nodes"):  # a kubelet may give its node's
        obj.pop("status", None)
    if resource.default is not None:
        resource.default(obj)


def generated_name(prefix: str) -> str:
    """Complete a generateName with five random letters."""
    suffix = "".join(random.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
    return prefix[:_GENERATED_PREFIX_LIMIT] + suffix


def before_update(new: Object, old: Object, resource: ResourceInfo, subresource: str) -> None:
    """Carry over what a client cannot change, and move the generation when the spec moved."""
    meta, before = new["metadata"], old["metadata"]
    for key in ("uid", "creationTimestamp", "name", "namespace"):
        if not meta.get(key) and key in before:
            meta[key] = before[key]
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        _replace(meta, before, key)
    meta.pop("selfLink", None)
    if subresource == "status":
        _status_only(new, old, resource)
    elif resource.has_status:
        _replace(new, old, "status")
    if subresource != "status" and resource.default is not None:
        resource.default(new)
    if (resource.custom or resource.generation) and _spec_moved(new, old, resource):
        meta["generation"] = int(before.get("generation", 0)) + 1


def _status_only(new: Object, old: Object, resource: ResourceInfo) -> None:
    for key in dict.fromkeys((*new, *old)):
        if key != "status" and key not in _TYPE:
            _replace(new, old, key)
    if resource.custom:
        written = new["metadata"]
        kept = {key: written[key] for key in ("managedFields", "resourceVersion") if key in written}
        new["metadata"] = {**old["metadata"], **kept}
    else:
        _replace(new["metadata"], old["metadata"], "ownerReferences")


def _replace(new: Object, old: Object, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def _spec_moved(new: Object, old: Object, resource: ResourceInfo) -> bool:
    """Tell whether anything but metadata (and status, where it has its own path) changed."""
    ignored = {*_TYPE, "status"} if resource.has_status else _TYPE
    return any(new.get(key) != old.get(key) for key in {*new, *old} - ignored)
