"""What an API server holds before its first request: namespaces, priority classes, roles, CRDs."""

import copy
from collections.abc import Sequence

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core import Core, key_of
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.kinds.strategy import before_create, normalise_meta
from hyperjob_sandbox.apiserver.shipped import shipped


def bootstrap_objects(part: str) -> list[Object]:
    """Give the objects of a part of `bootstrap.yaml`, each one's own copy."""
    return [copy.deepcopy(obj) for obj in shipped(__package__, "bootstrap.yaml")[part]]


def install(core: Core, objects: Sequence[Object]) -> None:
    """Store objects without admission; raise ValueError for a kind that is not served."""
    for obj in objects:
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = core.registry.find_kind(group, version, obj["kind"])
        if resource is None:
            raise ValueError(f"{obj['apiVersion']} {obj['kind']} is not served")
        normalise_meta(obj)
        before_create(obj, resource)
        definitions.complete(obj, resource)
        core.store.create(resource.storage, key_of(resource, obj), obj)
