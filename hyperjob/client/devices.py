"""The message for a device that no cluster has, with the most similar device. Pure."""

from collections.abc import Iterable

from hyperjob_core.hints import nearest
from hyperjob_engine.reasons.shortage import NoDevice, no_device_text


def no_device(name: str, devices: Iterable[str]) -> str:
    """Return a message that no cluster has `name`; `devices` are the devices of all clusters."""
    return no_device_text(NoDevice(name, nearest(name, devices) or ""))
