"""Stand-ins for Volcano's CustomResourceDefinitions of jobs, queues and commands.

The files are in `crds/` beside this module. The installer applies them without Volcano's own ones,
and the embedded control plane serves them.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import yaml

from hyperjob_core.api.meta import Object


@cache
def volcano_crds() -> Mapping[str, Object]:
    """Return the definitions by name, such as `jobs.batch.volcano.sh`."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, Object] = {}
    for path in (files("hyperjob_core.api") / "crds").iterdir():
        if path.name.endswith(".yaml"):
            definition: Object = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506 - both are safe
            found[definition["metadata"]["name"]] = definition
    return MappingProxyType(found)
