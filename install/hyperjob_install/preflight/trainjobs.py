"""Check which controller reconciles the TrainJobs of Kubeflow Trainer. Pure."""

from dataclasses import replace
from typing import Final

from hyperjob_core.api.trainer import RUNS_AS, TRAINER_CONTROLLER
from hyperjob_core.api.wire import objects
from hyperjob_core.kube.resources import TRAINJOBS
from hyperjob_install.preflight.finding import CheckResult, ok, warning
from hyperjob_install.preflight.observed import ObservedPlane, named, need, sees
from hyperjob_rules.configuration import VALIDATING_NAME

_OURS: Final = f"TrainJobs with the label {RUNS_AS} and managedBy {TRAINER_CONTROLLER}"


def trainjobs(observed: ObservedPlane) -> CheckResult:
    """Return a finding on TrainJobs; a warning where Trainer's own controller seems to run too."""
    if named(observed.definitions, TRAINJOBS.group_resource) is None:
        return ok("Kubeflow's TrainJobs are not installed")
    others = [
        str(each["metadata"]["name"])
        for each in [*need(observed.validating), *need(observed.mutating)]
        if each["metadata"]["name"] != VALIDATING_NAME
        and any(sees(hook, TRAINJOBS) for hook in objects(each.get("webhooks")))
    ]
    if not observed.settings.trainjobs:
        return ok(
            "HyperJob leaves TrainJobs to Kubeflow Trainer; to run them as HyperJobs: "
            + observed.install(settings=replace(observed.settings, trainjobs=True))
        )
    if others:
        return warning(
            f"Kubeflow Trainer is installed beside HyperJob (webhook configuration {others[0]}):"
            f" its controller, if it runs, reconciles {_OURS} a second time",
            remedy="stop the controller of Kubeflow Trainer in the Karmada API server, and delete"
            f" its webhook configurations {', '.join(others)}",
        )
    return ok(f"HyperJob reconciles {_OURS}; TrainJobs of MultiKueue are left alone")
