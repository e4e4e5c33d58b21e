"""Feature gates: a switch for each feature that is not settled, in the form of Kubernetes.

docs/stability.md has the table of features and says what its stages promise.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hyperjob_core.hints import nearest


class Stage(StrEnum):
    """How settled a feature is: an alpha feature is off by default, a beta feature on."""

    ALPHA = "Alpha"
    BETA = "Beta"


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature with a gate; `since` is the release that gave it this stage."""

    stage: Stage
    since: str
    what: str


FEATURES: Final = {
    "ExternalSplitter": Feature(
        Stage.ALPHA, "0.1", "an HTTP service splits HyperJobs: `--splitter-url`"
    ),
    "TrainJobs": Feature(
        Stage.BETA, "0.1", "the controller makes HyperJobs of Kubeflow's TrainJobs"
    ),
}
DEFAULT_GATES: Final = frozenset(
    name for name, feature in FEATURES.items() if feature.stage is Stage.BETA
)


def read_gates(text: str) -> frozenset[str]:
    """Return the features that are on after `Name=true,Other=false`; ValueError otherwise."""
    on = set(DEFAULT_GATES)
    for gate in filter(None, text.split(",")):
        name, _, value = gate.partition("=")
        if name not in FEATURES:
            near = nearest(name, FEATURES)
            hint = f"did you mean {near!r}?" if near else f"the gates are {', '.join(FEATURES)}"
            raise ValueError(f"there is no feature gate {name!r}; {hint}")
        if value not in ("true", "false"):
            raise ValueError(f"expected {name}=true or {name}=false, got {gate!r}")
        (on.add if value == "true" else on.discard)(name)
    return frozenset(on)


def show_gates(on: frozenset[str]) -> str:
    """Return all gates as `read_gates` reads them."""
    return ",".join(f"{name}={str(name in on).lower()}" for name in FEATURES)
