"""The content of a Lease, and the rule when it may be acquired. Pure: no clock, no I/O.

The times in the Lease are information for people. A Lease has expired if this process has observed
no change for the lease duration: clocks that disagree never cause two leaders.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import MANAGED_BY
from hyperjob_core.api.wire import count, mapping
from hyperjob_core.kube.resources import LEASES

_LONGEST_SECONDS: Final = 3600.0
"""The longest duration of a Lease that the controller can be given."""
_MOST_TRANSITIONS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Sight:
    """The Lease at its last observed change; `since` is the local monotonic time of that."""

    lease: Object
    since: float

    @property
    def holder(self) -> str:
        """Return the holder's identity; empty if there is no holder."""
        return str(_spec(self.lease).get("holderIdentity") or "")

    @property
    def transitions(self) -> int:
        """Return how often the holder has changed."""
        return count(_spec(self.lease).get("leaseTransitions"))

    def expires(self, default: float) -> float:
        """Return the monotonic time from which on another replica may acquire the Lease."""
        seconds = count(_spec(self.lease).get("leaseDurationSeconds")) or default
        return self.since + min(seconds, _LONGEST_SECONDS)

    def updated(self, lease: Object, now: float) -> "Sight":
        """Return the sight after another read: `since` changes only with the Lease."""
        was, is_now = self.lease["metadata"], lease["metadata"]
        same = all(was.get(part) == is_now.get(part) for part in ("uid", "resourceVersion"))
        return replace(self, lease=lease, since=self.since if same else now)


def new_lease(
    namespace: str, name: str, identity: str, *, seconds: int, now: datetime, manager: str = ""
) -> Object:
    """Return a new Lease with a holder, and with the label of the program `manager`."""
    labels = {"labels": {MANAGED_BY: manager}} if manager else {}
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"namespace": namespace, "name": name, **labels},
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": seconds,
            "acquireTime": micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": 0,
        },
    }


def held(sight: Sight, identity: str, *, seconds: int, now: datetime) -> Object:
    """Return the Lease as `identity` writes it: renewed if it is the holder, else acquired.

    The resourceVersion stays: the write fails if another client wrote in between.
    """
    old = _spec(sight.lease)
    renewed = sight.holder == identity
    return sight.lease | {
        "spec": old
        | {
            "holderIdentity": identity,
            "leaseDurationSeconds": seconds,
            "acquireTime": (renewed and old.get("acquireTime")) or micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": min(sight.transitions + (0 if renewed else 1), _MOST_TRANSITIONS),
        }
    }


def released(sight: Sight, *, now: datetime) -> Object:
    """Return the Lease as its holder releases it."""
    return sight.lease | {
        "spec": _spec(sight.lease)
        | {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": micro_time(now),
            "renewTime": micro_time(now),
        }
    }


def _spec(lease: Object) -> Object:
    return mapping(lease.get("spec"))
