"""What an API server holds before its first request: namespaces, priority classes, roles, CRDs."""

import copy
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import yaml

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core import Core, key_of
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.kinds.strategy import before_create, normalise_meta


@cache
def shipped(name: str) -> Object:
    """Read a table of this package; callers share it and must not change it."""
    # libyaml reads it ten times faster, where PyYAML has it
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: Object = yaml.load(
        (files(__package__) / name).read_bytes(),
        Loader=loader,  # noqa: S506 - both are safe
    )
    return found


def bootstrap_objects(part: str) -> list[Object]:
    """Give the objects of a part of `bootstrap.yaml`, each one's own copy."""
    return [copy.deepcopy(obj) for obj in shipped("bootstrap.yaml")[part]]


def install(core: Core, objects: Sequence[Object]) -> None:
    """Store objects without admission; raise ValueError for a kind that is not served."""
    for obj in objects:
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = core.registry.find_kind(group, version, obj["kind"])
        if resource is None:
            raise ValueError(f"{obj['apiVersion']} {obj['kind']} is not served")
        normalise_meta(obj)
        before_create(obj, resource)
        definitions.complete(core, obj, resource)
        core.store.create(resource.storage, key_of(resource, obj), obj)
