"""A Karmada API server on which all is well, as preflight reads it, and ways to spoil it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import orjson

import hyperjob
from hyperjob_certs.x509 import issue_ca
from hyperjob_core.api.names import CONTROLLER_VERSION, QUEUE_ADMISSION
from hyperjob_core.api.schema import hyperjob_crd
from hyperjob_install.interpreters import interpreters
from hyperjob_install.manifest import queue_policy
from hyperjob_install.preflight.observed import ControllerRights, DryRun, ObservedPlane
from hyperjob_install.settings import TRAINJOBS, Settings
from hyperjob_rules.configuration import configurations
from tests.support.structural import crds
from tests.support.trainjobs import crds as trainer_crds

Object = dict[str, Any]
NOW = datetime(2026, 6, 1, tzinfo=UTC)
GPU = "nvidia.com/gpu"
KINDS = (
    *("HyperJob", "Job", "Queue", "Command", "PropagationPolicy", "ResourceBinding"),
    "ServiceExport",
)
GROUPS = ("cluster", "config", "policy", "work")


@cache
def ca_pem(days: int = 365) -> bytes:
    """Make an authority that is valid for so many days from now on."""
    made = NOW - timedelta(days=30)
    lifetime = NOW + timedelta(days=days) - made
    return issue_ca(common_name="test", lifetime=lifetime, now=made).certificate


def definition(kind: str) -> Object:
    found: Object = orjson.loads(_definition(kind))
    return found


def definitions() -> list[Object]:
    """Make definitions that a test may change."""
    return [definition(kind) for kind in KINDS]


_shared = cache(definitions)


@cache
def _definition(kind: str) -> bytes:
    found = hyperjob_crd() if kind == "HyperJob" else crds()[kind]
    established = {"type": "Established", "status": "True"}
    return orjson.dumps({**found, "status": {"conditions": [established]}})


def cluster(name: str, **status: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "apiEnablements": [
                {"groupVersion": "batch.volcano.sh/v1alpha1", "resources": [{"kind": "Job"}]},
                {
                    "groupVersion": "multicluster.x-k8s.io/v1alpha1",
                    "resources": [{"kind": "ServiceExport"}],
                },
            ],
            "resourceSummary": {"allocatable": {"cpu": "64", GPU: "16"}},
            **status,
        },
    }


def queue(state: str | None, *, policy: str = "hyperjob-queues") -> Object:
    annotations = {"clusterpropagationpolicy.karmada.io/name": policy}
    status = {} if state is None else {"state": state}
    return {"metadata": {"name": "default", "annotations": annotations}, "status": status}


def policy(name: str, resolution: str | None) -> Object:
    spec: Object = {
        "resourceSelectors": [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}]
    }
    if resolution is not None:
        spec["conflictResolution"] = resolution
    return {"metadata": {"name": name}, "spec": spec}


def interpreter(name: str, kind: str, *operations: str) -> Object:
    group = "scheduling.volcano.sh/v1beta1" if kind == "Queue" else "batch.volcano.sh/v1alpha1"
    scripts = {operation: {"luaScript": "function F() end"} for operation in operations}
    return {
        "metadata": {"name": name},
        "spec": {"target": {"apiVersion": group, "kind": kind}, "customizations": scripts},
    }


def volcano_global() -> Object:
    return {
        "metadata": {"name": "volcano-admission-service-resourcebindings-mutate"},
        "webhooks": [
            {
                "clientConfig": {"url": "https://vg.svc:443/resourcebindings/mutate"},
                "rules": [{"apiGroups": ["work.karmada.io"], "resources": ["resourcebindings"]}],
            }
        ],
    }


def vcjob_validation() -> Object:
    rules = [{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"]}]
    return {"metadata": {"name": "volcano-jobs"}, "webhooks": [{"rules": rules}]}


def lease(
    *,
    renewed: timedelta = timedelta(seconds=2),
    holder: str = "controller-0",
    version: str = hyperjob.__version__,
    admission: str = "builtin",
) -> Object:
    annotations = {CONTROLLER_VERSION: version, QUEUE_ADMISSION: admission}
    return {
        "metadata": {
            "name": "hyperjob-controller",
            "annotations": {key: value for key, value in annotations.items() if value},
        },
        "spec": {
            "holderIdentity": holder,
            "renewTime": (NOW - renewed).isoformat(),
            "leaseDurationSeconds": 15,
        },
    }


def healthy(**changes: Any) -> ObservedPlane:
    mutating, validating = configurations(url="https://hj.svc:443", ca_bundle=ca_pem())
    observed = ObservedPlane(
        now=NOW,
        host="karmada:5443",
        version="v1.36.2",
        groups=frozenset(f"{group}.karmada.io" for group in GROUPS),
        leases=[lease()],
        definitions=_shared(),
        clusters=[cluster("east"), cluster("west")],
        queues=[queue("Open")],
        interpreters=[item.object for item in interpreters()],
        policies=[queue_policy().object],
        mutating=[mutating],
        validating=[validating],
        tenancy=[],
        trial=DryRun(None, hyperjob.__version__),
        vcjob=DryRun(None),
        installation=Settings(url="https://hj.svc:443"),
        rights=ControllerRights("hyperjob-controller", ()),
        members=dict.fromkeys(("east", "west"), ControllerRights("hyperjob-members", ())),
    )
    return replace(observed, **changes)


def with_trainjobs(*, trainjobs: bool, webhook: str = "") -> ObservedPlane:
    """Install Trainer's definitions, and a webhook configuration of Trainer by its name."""
    plane = healthy()
    assert isinstance(plane.definitions, list)
    assert isinstance(plane.validating, list)
    rules = [{"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"]}]
    other = {"metadata": {"name": webhook}, "webhooks": [{"rules": rules}]}
    return replace(
        plane,
        definitions=[*plane.definitions, *trainer_crds()],
        validating=[*plane.validating, *([other] if webhook else [])],
        installation=replace(plane.settings, parts=frozenset({TRAINJOBS} if trainjobs else ())),
    )
