"""What is written into a Lease, and when a Lease is free. Pure: no clock, no I/O.

Times in the Lease are for people. Whether it has expired is judged by how long *we* have seen it
unchanged, so that clocks that disagree never make two leaders.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from hyperjob.api.meta import Object
from hyperjob.kube.microtime import micro_time
from hyperjob.kube.resources import LEASES


@dataclass(frozen=True, slots=True)
class Sight:
    """A Lease as we saw it last change: `since` is our own monotonic time."""

    lease: Object
    since: float

    @property
    def holder(self) -> str:
        """Return the holder's identity, "" when it has no holder."""
        return str(_spec(self.lease).get("holderIdentity") or "")

    @property
    def transitions(self) -> int:
        """Count how often the holder changed."""
        return int(_spec(self.lease).get("leaseTransitions") or 0)

    def expires(self, default: float) -> float:
        """Return the monotonic time from which on the Lease may be taken from its holder."""
        return self.since + float(_spec(self.lease).get("leaseDurationSeconds") or default)

    def updated(self, lease: Object, now: float) -> "Sight":
        """See the Lease again: the time of sight moves only when it was written meanwhile."""
        was, is_now = self.lease["metadata"], lease["metadata"]
        same = all(was.get(part) == is_now.get(part) for part in ("uid", "resourceVersion"))
        return replace(self, lease=lease, since=self.since if same else now)


def new_lease(namespace: str, name: str, identity: str, *, seconds: int, now: datetime) -> Object:
    """Build a Lease that is held from the start."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": seconds,
            "acquireTime": micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": 0,
        },
    }


def held(sight: Sight, identity: str, *, seconds: int, now: datetime) -> Object:
    """Build the Lease as `identity` writes it: renewed if it has it already, taken otherwise.

    The resourceVersion stays, so the write fails when another client wrote meanwhile.
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
            "leaseTransitions": sight.transitions + (0 if renewed else 1),
        }
    }


def released(sight: Sight, *, now: datetime) -> Object:
    """Build the Lease as its holder gives it up."""
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
    return lease.get("spec") or {}
