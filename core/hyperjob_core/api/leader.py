"""The leading controller, from its Lease: holder, time, release, queue admission. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import CONTROLLER_VERSION, QUEUE_ADMISSION

_SECONDS: Final = 15  # a Lease without a duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The last holder of a Lease; `leads` while it renews the Lease.

    `version` is its release and `admission` its queue admission; both are empty for a release
    before 0.2, which did not write them.
    """

    holder: str
    renewed: datetime | None
    leads: bool
    version: str
    admission: str


def leader_of(lease: Object, *, now: datetime) -> Leader:
    """Return the holder of a Lease; it does not lead after twice the duration without a renewal."""
    spec, annotations = lease.get("spec") or {}, lease["metadata"].get("annotations") or {}
    holder, renewed = str(spec.get("holderIdentity") or ""), _time(spec.get("renewTime"))
    seconds = spec.get("leaseDurationSeconds") or _SECONDS
    fresh = renewed is not None and now - renewed <= timedelta(seconds=2 * seconds)
    return Leader(
        holder=holder,
        renewed=renewed,
        leads=bool(holder) and fresh,
        version=_text(annotations, CONTROLLER_VERSION),
        admission=_text(annotations, QUEUE_ADMISSION),
    )


def _text(values: Mapping[str, object], key: str) -> str:
    return str(values.get(key) or "")


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None
