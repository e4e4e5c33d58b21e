"""Find the objects that pods need in the control plane and in the files of a plan."""

from collections.abc import Callable, Iterable

from hyperjob.client.errors import words
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.existing import KINDS, Names, existing
from hyperjob_core.kube.resources import PRIORITY_CLASSES, Resource
from hyperjob_rules.defaulting import default
from hyperjob_rules.validation.context import NOTHING_KNOWN
from hyperjob_rules.validation.create import inspect
from hyperjob_rules.validation.needs import needs


def needed(hyperjobs: Iterable[Object], *, namespace: str) -> set[tuple[str, str, str]]:
    """Return namespace, kind and name of the objects that the pods of valid HyperJobs need."""
    found: set[tuple[str, str, str]] = set()
    for hyperjob in hyperjobs:
        content = default(hyperjob)
        if inspect(content, context=NOTHING_KNOWN, strict=True).refusals:
            continue
        home = string(at(content, "metadata", "namespace")) or namespace
        found |= {(home, kind, name) for kind, name in needs(content)}
    return found


def written(objects: Iterable[Object], *, namespace: str) -> Names:
    """Return the names of a file's objects of the kinds that pods may need."""
    found: dict[tuple[str, str], set[str]] = {}
    for obj in objects:
        kind, name = string(obj.get("kind")), string(at(obj, "metadata", "name"))
        if kind in KINDS:
            home = string(at(obj, "metadata", "namespace")) or namespace
            found.setdefault((home, kind), set()).add(name)
        elif kind == PRIORITY_CLASSES.kind:
            found.setdefault(("", kind), set()).add(name)
    return {key: frozenset(names) for key, names in found.items()}


def together(there: Names, more: Names) -> Names:
    """Return the names of `there` with those of `more`, for the kinds that `there` has."""
    return {key: names | more.get(key, frozenset()) for key, names in there.items()}


async def read_needed(
    kube: Kube, wanted: Iterable[tuple[str, str, str]], *, left_out: Callable[[str], None]
) -> Names:
    """Read each object by its name; `left_out` gets a line for each unreadable resource."""

    def unknown(resource: Resource, error: KubeError | ValueError) -> None:
        text = words(error) if isinstance(error, KubeError) else str(error)
        left_out(f"{resource.group_resource} left out: {text}")

    return await existing(kube, wanted, left_out=unknown)
