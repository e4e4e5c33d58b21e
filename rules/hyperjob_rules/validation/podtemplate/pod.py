"""The facts about a pod on which the rules for its parts depend, computed once per template."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, Self

from hyperjob_core.api.meta import Object

DEFAULT_GRACE: Final = 30


class Pod(NamedTuple):
    """The facts about a pod: names of volumes, containers and claims; times in seconds."""

    volumes: Mapping[str, Object]
    claims: Collection[str]
    grace: int
    restart_policy: str
    host_network: bool
    host_ipc: bool
    host_users: bool
    containers: Collection[str]
    """The names of the containers that are not init containers."""

    @classmethod
    def of(cls, spec: Object) -> Self:
        """Return the facts from the spec of a pod, with the API server's defaults."""
        get = spec.get
        grace = get("terminationGracePeriodSeconds")
        return cls(
            {volume.get("name") or "": volume for volume in get("volumes") or ()},
            {claim["name"] for claim in get("resourceClaims") or () if claim.get("name")},
            DEFAULT_GRACE if grace is None else grace,
            get("restartPolicy") or "Always",
            bool(get("hostNetwork")),
            bool(get("hostIPC")),
            get("hostUsers") is not False,
            [container.get("name") or "" for container in get("containers") or ()],
        )
