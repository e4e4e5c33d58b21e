"""Word that no cluster has a device, with the device that was probably meant. Pure."""

from collections.abc import Iterable

from controller.model.shortage import NoDevice
from controller.status.shortage import no_device_text
from hyperjob.hints import nearest


def no_device(name: str, devices: Iterable[str]) -> str:
    """Say that no cluster has `name`; `devices` are those that clusters have."""
    return no_device_text(NoDevice(name, nearest(name, devices) or ""))
