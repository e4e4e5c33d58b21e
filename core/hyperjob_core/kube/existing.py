"""The check which of the objects that pods need exist: by name, and claims with their volumes.

Of all other kinds the API server sends the metadata alone.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from hyperjob_core.tasks import at_once

Names: TypeAlias = Mapping[tuple[str, str], Mapping[str, str]]
"""The existing names, by namespace and kind; a missing key means unknown.

The value of a claim is the PersistentVolume that its `volumeName` names, any other is empty.
"""

KINDS: Final[Mapping[str, Resource]] = {
    each.kind: each for each in (CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, SECRETS, SERVICE_ACCOUNTS)
}
_MOST: Final = 200
_PARALLEL: Final = 16
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


async def existing(
    kube: Kube,
    wanted: Iterable[tuple[str, str, str]],
    *,
    left_out: Callable[[Resource, KubeError | ValueError], None],
    most: int = _MOST,
) -> Names:
    """Look for each namespace, kind and name, at most 16 at a time and `most` in all.

    A kind that the client may not read in a namespace, or that is above `most`, is unknown:
    `left_out` is called with the first error.
    """
    found: dict[tuple[str, str], dict[str, str]] = {}
    unknown: set[tuple[str, str]] = set()

    async def look(each: tuple[str, str, str]) -> None:
        """Add the name to `found`, or its namespace and kind to `unknown`."""
        namespace, kind, name = each
        key = namespace, kind
        found.setdefault(key, {})
        if key in unknown:
            return
        try:
            if kind == PERSISTENT_VOLUME_CLAIMS.kind:
                claim = await kube.get(KINDS[kind], name, namespace=namespace)
                found[key][name] = string(at(claim, "spec", "volumeName"))
                return
            path = KINDS[kind].path(namespace, name)
            await kube.raw("GET", path, accept=f"{_METADATA}, application/json")
            found[key][name] = ""
        except NotFound:
            return
        except (KubeError, ValueError) as error:
            if key not in unknown:
                unknown.add(key)
                left_out(KINDS[kind], error)

    ordered = sorted(set(wanted))
    await at_once(look, ordered[:most], most=_PARALLEL)
    unknown |= {(namespace, kind) for namespace, kind, _ in ordered[most:]}
    return {key: names for key, names in found.items() if key not in unknown}
