"""Which objects that pods need exist: in the control plane, or beside the HyperJobs of a file."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from controller.model.wire import at, string
from hyperjob.api.meta import Object
from hyperjob.client.errors import words
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError, NotFound
from hyperjob.kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PRIORITY_CLASSES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from webhook.defaulting import default
from webhook.validation.context import NOTHING_KNOWN
from webhook.validation.create import inspect
from webhook.validation.needs import needs

Names: TypeAlias = Mapping[tuple[str, str], frozenset[str]]
"""The names that are there, by namespace and kind; what is not in it is unknown."""

_KINDS: Final[Mapping[str, Resource]] = {
    each.kind: each for each in (CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, SECRETS, SERVICE_ACCOUNTS)
}
_MOST: Final = 200
_PARALLEL: Final = 16
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


def needed(hyperjobs: Iterable[Object], *, namespace: str) -> set[tuple[str, str, str]]:
    """Return namespace, kind and name of what the pods of HyperJobs need, of valid ones alone."""
    found: set[tuple[str, str, str]] = set()
    for hyperjob in hyperjobs:
        content = default(hyperjob)
        if inspect(content, context=NOTHING_KNOWN, strict=True).refusals:
            continue
        home = string(at(content, "metadata", "namespace")) or namespace
        found |= {(home, kind, name) for kind, name in needs(content)}
    return found


def written(objects: Iterable[Object], *, namespace: str) -> Names:
    """Return the names of the objects of a file that pods may need."""
    found: dict[tuple[str, str], set[str]] = {}
    for obj in objects:
        kind, name = string(obj.get("kind")), string(at(obj, "metadata", "name"))
        if kind in _KINDS:
            home = string(at(obj, "metadata", "namespace")) or namespace
            found.setdefault((home, kind), set()).add(name)
        elif kind == PRIORITY_CLASSES.kind:
            found.setdefault(("", kind), set()).add(name)
    return {key: frozenset(names) for key, names in found.items()}


def together(there: Names, more: Names) -> Names:
    """Add names to those that are known; what is unknown stays so."""
    return {key: names | more.get(key, frozenset()) for key, names in there.items()}


async def read_needed(
    kube: Kube, wanted: Iterable[tuple[str, str, str]], *, left_out: Callable[[str], None]
) -> Names:
    """Look for each object by its name; `left_out` gets a line about what one may not read."""
    found: dict[tuple[str, str], set[str]] = {}
    unknown: set[tuple[str, str]] = set()
    limit = asyncio.Semaphore(_PARALLEL)

    async def look(namespace: str, kind: str, name: str) -> None:
        key = namespace, kind
        found.setdefault(key, set())
        try:
            async with limit:
                if key in unknown:
                    return
                path = _KINDS[kind].path(namespace, name)
                await kube.raw("GET", path, accept=f"{_METADATA}, application/json")
            found[key].add(name)
        except NotFound:
            return
        except (KubeError, ValueError) as error:
            if key not in unknown:
                unknown.add(key)
                told = words(error) if isinstance(error, KubeError) else str(error)
                left_out(f"{_KINDS[kind].group_resource} left out: {told}")

    ordered = sorted(set(wanted))
    async with asyncio.TaskGroup() as group:
        for each in ordered[:_MOST]:
            group.create_task(look(*each))
    unknown |= {(namespace, kind) for namespace, kind, _ in ordered[_MOST:]}
    return {key: frozenset(names) for key, names in found.items() if key not in unknown}
