"""What the containers of a pod need to know of the pod that they are in.

A value, made once per template.
"""

from dataclasses import dataclass
from typing import Final, Self

from hyperjob.api.meta import Object

DEFAULT_GRACE: Final = 30


@dataclass(frozen=True, slots=True)
class Pod:
    """The facts about a pod that rules about its containers depend on."""

    volumes: dict[str, Object]
    claims: frozenset[str]
    grace: int
    restart_policy: str
    host_network: bool
    host_users: bool
    container_names: tuple[str, ...]

    @classmethod
    def of(cls, spec: Object) -> Self:
        """Gather the facts from the spec of a pod."""
        grace = spec.get("terminationGracePeriodSeconds")
        return cls(
            volumes={volume.get("name") or "": volume for volume in spec.get("volumes") or ()},
            claims=_claims(spec.get("resourceClaims")),
            grace=DEFAULT_GRACE if grace is None else grace,
            restart_policy=spec.get("restartPolicy") or "Always",
            host_network=bool(spec.get("hostNetwork")),
            host_users=spec.get("hostUsers") is not False,
            container_names=tuple(c.get("name") or "" for c in spec.get("containers") or ()),
        )


_NO_CLAIMS: Final[frozenset[str]] = frozenset()


def _claims(claims: list[Object] | None) -> frozenset[str]:
    return frozenset(c["name"] for c in claims if c.get("name")) if claims else _NO_CLAIMS
