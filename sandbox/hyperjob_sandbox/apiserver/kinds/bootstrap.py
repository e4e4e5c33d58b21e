"""What an API server holds before its first request: namespaces, priority classes, roles, CRDs."""

import copy
from collections.abc import Sequence

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.core import Core, key_of
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.kinds.strategy import before_create, normalise_meta
from hyperjob_sandbox.apiserver.shipped import shipped


def install(core: Core, parts: Sequence[str], crds: Sequence[Object]) -> None:
    """Store copies of parts of `bootstrap.yaml` and of CRDs, past admission.

    Raises ValueError for a kind that is not served.
    """
    held = shipped(__package__, "bootstrap.yaml")
    for given in (*(obj for part in parts for obj in held[part]), *crds):
        obj = copy.deepcopy(given)
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = core.registry.find_kind(group, version, obj["kind"])
        if resource is None:
            raise ValueError(f"{obj['apiVersion']} {obj['kind']} is not served")
        normalise_meta(obj)
        before_create(obj, resource)
        definitions.complete(obj, resource)
        core.store.create(resource.storage, key_of(resource, obj), obj)
