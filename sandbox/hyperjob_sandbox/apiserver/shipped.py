"""The tables in YAML that this package ships."""

from functools import cache
from importlib.resources import files

import yaml

from hyperjob_core.api.meta import Object


@cache
def shipped(package: str, name: str) -> Object:
    """Read a table of a package; callers share it and must not change it."""
    # libyaml reads it ten times faster, where PyYAML has it
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: Object = yaml.load(
        (files(package) / name).read_bytes(),
        Loader=loader,  # noqa: S506 - both are safe
    )
    return found
