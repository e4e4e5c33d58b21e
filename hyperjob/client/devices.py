"""Word that no cluster has a device, with the device that was probably meant. Pure."""

from collections.abc import Iterable

from hyperjob.hints import nearest


def no_device(name: str, devices: Iterable[str]) -> str:
    """Say that no cluster has `name`; `devices` are those that clusters have."""
    near = nearest(name, devices)
    return f"no cluster has {name}{f'; did you mean {near}?' if near else ''}"
