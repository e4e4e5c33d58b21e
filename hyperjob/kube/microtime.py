"""Kubernetes' MicroTime: UTC with six digits. It never prints local time."""

from datetime import UTC, datetime


def micro_time(moment: datetime) -> str:
    """Print a moment as MicroTime; it must know its time zone."""
    if moment.tzinfo is None:
        raise ValueError("a moment without a time zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def utc_now() -> datetime:
    """Return the wall clock in UTC."""
    return datetime.now(UTC)
