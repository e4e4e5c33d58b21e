"""The leading controller, from its Lease: holder, time, release, queue admission. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import CONTROLLER_USER, CONTROLLER_VERSION, QUEUE_ADMISSION
from hyperjob_core.api.wire import at, count, mapping, string, string_map, timestamp

_SEPARATOR: Final = "\n"
_SECONDS: Final = 15
"""The duration of a Lease without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The last holder of a Lease; `leads` while it renews the Lease.

    `version` is its release and `admission` its queue admission; both are empty for a release
    before 0.2, which did not write them. `user` is its user in the API server, empty if unknown,
    and `groups` are those of the user.
    """

    holder: str
    renewed: datetime | None
    leads: bool
    version: str
    admission: str
    user: str = ""
    groups: tuple[str, ...] = ()


def leader_of(leases: Sequence[Object], *, now: datetime) -> Leader | None:
    """Return the holder of the first Lease, if there is one.

    It does not lead after twice the duration without a renewal. A malformed field reads as absent.
    """
    if not leases:
        return None
    lease = leases[0]
    spec = mapping(lease.get("spec"))
    annotations = string_map(at(lease, "metadata", "annotations"))
    holder, renewed = string(spec.get("holderIdentity")), timestamp(spec.get("renewTime"))
    seconds = count(spec.get("leaseDurationSeconds")) or _SECONDS
    fresh = renewed is not None and now - renewed <= timedelta(seconds=2 * seconds)
    user, *groups = annotations.get(CONTROLLER_USER, "").split(_SEPARATOR)
    return Leader(
        holder=holder,
        renewed=renewed,
        leads=bool(holder) and fresh,
        version=annotations.get(CONTROLLER_VERSION, ""),
        admission=annotations.get(QUEUE_ADMISSION, ""),
        user=user,
        groups=tuple(groups),
    )


def user_annotation(user: str, groups: Iterable[str]) -> str:
    """Return the annotation of a Lease with the controller's user; `leader_of` reads it."""
    return _SEPARATOR.join((user, *groups))
