"""Kubernetes' MicroTime: UTC with six digits."""

from datetime import UTC, datetime


def micro_time(moment: datetime) -> str:
    """Return a moment as MicroTime; raises ValueError for a moment without a time zone."""
    if moment.tzinfo is None:
        raise ValueError("a moment without a time zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)
