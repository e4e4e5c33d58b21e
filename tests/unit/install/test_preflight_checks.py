"""Each check of preflight: what it says of a state, how bad that is, and the remedy."""

from datetime import timedelta
from typing import Any

import pytest

from hyperjob import __version__
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.field import make_status
from hyperjob_core.kube.errors import Forbidden, InternalError, Invalid
from hyperjob_install.preflight import CHECKS, Status, examine
from hyperjob_install.preflight.observed import (
    ControllerRights,
    DryRun,
    ObservedPlane,
)
from hyperjob_install.settings import Settings
from hyperjob_install.tenancy import POLICIES
from tests.unit.install.changes import (
    add,
    changed,
    drop,
    karmada,
    not_established,
    without,
)
from tests.unit.install.observations import (
    cluster,
    healthy,
    interpreter,
    lease,
    policy,
    queue,
    vcjob_validation,
    volcano_global,
    with_trainjobs,
)

OK, WARNING = Status.OK, Status.WARNING
FAILED, UNKNOWN = Status.FAILED, Status.UNKNOWN


def run(check: str, observed: ObservedPlane) -> tuple[Status, str, str]:
    report = examine(observed)
    (verdict,) = (finding.verdict for finding in report.findings if finding.check == check)
    return verdict.status, verdict.message, verdict.remedy


def test_all_is_well_on_a_healthy_server() -> None:
    report = examine(healthy())
    assert {finding.verdict.status for finding in report.findings} == {OK}
    assert report.passed


def test_only_what_is_well_needs_no_mending() -> None:
    broken = healthy(
        groups=frozenset(),
        definitions=[],
        clusters=[],
        queues=[],
        interpreters=[],
        policies=[],
        mutating=[],
        validating=[],
        trial=None,
    )
    report = examine(broken)
    assert not report.passed
    for finding in report.findings:
        assert (finding.verdict.status is OK) == (finding.verdict.remedy == ""), finding


def volcano(name: str, *kinds: tuple[str, str]) -> Any:
    served = [("batch.volcano.sh/v1alpha1", "Job"), *kinds]
    return cluster(
        name,
        apiEnablements=[
            {"groupVersion": version, "resources": [{"kind": kind}]} for version, kind in served
        ],
    )


CASES: dict[str, dict[str, tuple[ObservedPlane, Status, str, str]]] = {
    "karmada": {
        "a plain Kubernetes": (
            healthy(groups=frozenset({"apps"})),
            FAILED,
            "not a Karmada API server",
            "--kubeconfig",
        ),
        "Karmada 1.19": (karmada("1.19"), OK, "1.19 or newer", ""),
        "Karmada 1.18": (karmada("1.18"), OK, "1.18 or newer", ""),
        "Karmada 1.17": (karmada("1.17"), OK, "1.17 or newer", ""),
        "Karmada 1.15": (karmada("1.15"), WARNING, "1.15 or newer", "1.16"),
        "Karmada 1.13": (karmada("1.13"), WARNING, "1.13 or newer", "1.16"),
        "Karmada 1.12": (karmada("1.12"), FAILED, "older than 1.13", "upgrade"),
    },
    "hyperjob-definition": {
        "no HyperJobs": (without("HyperJob"), FAILED, "is missing", "hyperjob install "),
        "HyperJobs not served": (
            not_established(),
            FAILED,
            "not served",
            "kubectl describe crd hyperjobs.training.volcano.sh",
        ),
        "an older HyperJob": (
            changed("HyperJob", drop("spec", "suspend")),
            FAILED,
            "lacks spec.suspend",
            "hyperjob install ",
        ),
        "a newer HyperJob": (
            changed("HyperJob", add),
            WARNING,
            "it also has spec.future",
            "release",
        ),
    },
    "volcano-definitions": {
        "no queues": (
            without("Queue"),
            FAILED,
            "queues.scheduling.volcano.sh",
            "hyperjob install ",
        ),
        "an older Volcano": (
            changed("Job", drop("spec", "networkTopology")),
            WARNING,
            "drops fields that newer members accept: spec.networkTopology",
            "newest Volcano",
        ),
    },
    "controller-leads": {
        "a controller of this release": (healthy(), OK, "controller-0 leads", ""),
        "no Lease": (
            healthy(leases=[]),
            FAILED,
            "there is no Lease karmada-system/hyperjob-controller",
            "Deployment hyperjob-controller",
        ),
        "a Lease that is not renewed": (
            healthy(leases=[lease(renewed=timedelta(minutes=7))]),
            FAILED,
            "renewed 7m ago, by controller-0",
            "read its log",
        ),
        "a Lease that was given up": (
            healthy(leases=[lease(holder="")]),
            FAILED,
            "no controller leads",
            "Deployment hyperjob-controller",
        ),
        "a controller of another release": (
            healthy(leases=[lease(version="9.3.0")]),
            WARNING,
            "its release is 9.3.0",
            "one release",
        ),
        "a controller that tells no release": (
            healthy(leases=[lease(version="")]),
            WARNING,
            "its release is unknown",
            "one release",
        ),
    },
    "queue-admission": {
        "our queues without Volcano Global": (healthy(), OK, "queue admission is builtin", ""),
        "our queues beside Volcano Global": (
            healthy(mutating=[volcano_global()]),
            WARNING,
            "its quotas have no effect",
            "--queue-admission auto",
        ),
        "Volcano Global is waited for and not there": (
            healthy(leases=[lease(admission="volcano-global")]),
            FAILED,
            "no HyperJob starts",
            "--queue-admission auto",
        ),
        "Volcano Global confirms": (
            healthy(mutating=[volcano_global()], leases=[lease(admission="volcano-global")]),
            OK,
            "queue admission is volcano-global",
            "",
        ),
        "a controller that does not lead has no mode": (
            healthy(leases=[]),
            OK,
            "until a controller leads",
            "",
        ),
    },
    "queue-policy": {
        "no queue policy": (
            healthy(policies=[{"metadata": {"name": "other"}, "spec": {}}]),
            FAILED,
            "no ClusterPropagationPolicy copies queues",
            "hyperjob install ",
        ),
        "a queue policy that gives way": (
            healthy(queues=[queue(None, policy="theirs")], policies=[policy("theirs", None)]),
            FAILED,
            "policy theirs does not adopt queues",
            "kubectl patch clusterpropagationpolicy theirs --type=merge",
        ),
        "another policy that holds the queue though ours is there": (
            healthy(
                queues=[queue("Open", policy="theirs")],
                policies=[policy("theirs", "Abort"), policy("hyperjob-queues", "Overwrite")],
            ),
            FAILED,
            "policy theirs",
            "kubectl patch clusterpropagationpolicy theirs",
        ),
        "another policy that overwrites": (
            healthy(
                queues=[queue("Open", policy="theirs")], policies=[policy("theirs", "Overwrite")]
            ),
            OK,
            "policy theirs",
            "",
        ),
    },
    "default-queue": {
        "no default queue": (healthy(queues=[]), WARNING, "does not exist", "hyperjob install "),
        "no default queue where jobs are checked": (
            healthy(queues=[], validating=[vcjob_validation()]),
            FAILED,
            "refuses jobs without it",
            "hyperjob install ",
        ),
        "a queue without state": (
            healthy(queues=[queue(None)]),
            WARNING,
            "has no state",
            "kubectl describe clusterresourcebinding default-queue",
        ),
        "a queue without state where jobs are checked": (
            healthy(queues=[queue(None)], validating=[vcjob_validation()]),
            FAILED,
            "has no state",
            "kubectl describe clusterresourcebinding default-queue",
        ),
        "a closed queue": (
            healthy(queues=[queue("Closed")]),
            FAILED,
            "is Closed",
            "vcctl queue operate",
        ),
    },
    "interpreters": {
        "no interpreters": (
            healthy(interpreters=[]),
            FAILED,
            "hyperjob-vcjob, hyperjob-queue",
            "hyperjob install ",
        ),
        "another release's interpreters": (
            healthy(
                interpreters=[
                    interpreter("hyperjob-vcjob", "Job", "retention"),
                    interpreter("hyperjob-queue", "Queue", "retention"),
                ]
            ),
            WARNING,
            "not this release's",
            "hyperjob install ",
        ),
        "interpreters in the way": (
            healthy(
                interpreters=[
                    interpreter(
                        "vcjob-configuration", "Job", "replicaResource", "statusReflection"
                    ),
                    interpreter("queue-configuration", "Queue", "statusAggregation"),
                ]
            ),
            FAILED,
            "vcjob-configuration defines replicaResource; queue-configuration defines status",
            "hyperjob install --webhook-url https://hj.svc:443 --allow interpreters",
        ),
        "an interpreter of another product in the way": (
            healthy(
                interpreters=[
                    interpreter("theirs", "Job", "replicaResource"),
                    interpreter("queue-configuration", "Queue", "statusAggregation"),
                ]
            ),
            FAILED,
            "theirs defines replicaResource; queue-configuration defines status",
            "kubectl delete resourceinterpretercustomization theirs queue-configuration",
        ),
    },
    "other-interpreters": {
        "an interpreter that hides status": (
            healthy(interpreters=[interpreter("theirs", "Job", "statusReflection")]),
            WARNING,
            "statusReflection",
            "kubectl delete resourceinterpretercustomization theirs",
        ),
        "an interpreter that revises": (
            healthy(interpreters=[interpreter("theirs", "Job", "replicaRevision")]),
            WARNING,
            "jobs without pods",
            "kubectl delete resourceinterpretercustomization theirs",
        ),
        "an interpreter of another kind": (
            healthy(interpreters=[interpreter("theirs", "Queue", "statusReflection")]),
            OK,
            "no other",
            "",
        ),
    },
    "members-vcjob-api": {
        "members with different releases of Volcano": (
            healthy(
                clusters=[
                    volcano("new", ("config.volcano.sh/v1alpha1", "ColocationConfiguration")),
                    volcano("east", ("batch.volcano.sh/v1alpha1", "CronJob")),
                    volcano("west", ("batch.volcano.sh/v1alpha1", "CronJob")),
                    volcano("old", ("topology.volcano.sh/v1alpha1", "HyperNode")),
                    volcano("bare"),
                ]
            ),
            OK,
            (
                "Volcano 1.12 or newer in old; Volcano 1.13 or newer in east, west;"
                " Volcano 1.14 or newer in new; Volcano without HyperNodes in bare"
            ),
            "",
        ),
        "a member without Volcano": (
            healthy(clusters=[cluster("east"), cluster("west", apiEnablements=[])]),
            WARNING,
            "do not serve vcjobs",
            "kubectl get cluster west",
        ),
        "batch/v1 Jobs are no vcjobs": (
            healthy(
                clusters=[
                    cluster(
                        "east",
                        apiEnablements=[
                            {"groupVersion": "batch/v1", "resources": [{"kind": "Job"}]}
                        ],
                    )
                ]
            ),
            FAILED,
            "do not serve vcjobs",
            "kubectl get cluster east",
        ),
    },
    "members-ready": {
        "no members": (healthy(clusters=[]), FAILED, "no cluster has joined", "karmadactl join"),
        "a member is down": (
            healthy(clusters=[cluster("east"), cluster("west", conditions=[])]),
            WARNING,
            "1 of 2 members not ready: west",
            "kubectl describe cluster west",
        ),
        "all members are down": (
            healthy(clusters=[cluster("east", conditions=[])]),
            FAILED,
            "1 of 1 member not ready: east",
            "kubectl describe cluster east",
        ),
    },
    "webhook-answers": {
        "a controller without a version is not compared": (
            healthy(leases=[lease(version="")]),
            OK,
            "admitted a HyperJob in a dry run",
            "",
        ),
        "a controller that no longer leads is not compared": (
            healthy(leases=[lease(version="9.3.0", renewed=timedelta(hours=1))]),
            OK,
            "admitted a HyperJob in a dry run",
            "",
        ),
        "a name that the certificate lacks": (
            healthy(
                trial=DryRun(
                    InternalError(
                        make_status(
                            500,
                            "failed calling webhook x: tls: failed to verify certificate: x509:"
                            " certificate is valid for a.svc, not hj.svc",
                        )
                    )
                )
            ),
            FAILED,
            "the certificate lacks the name under which the API server calls the webhook",
            "--karmada-kubeconfig karmada.config --name hj.svc --inject",
        ),
        "nothing to answer for": (healthy(trial=None), FAILED, "no Hyper", "hyperj"),
        "nothing that answers": (
            healthy(mutating=[], validating=[]),
            FAILED,
            "are missing: hyperjob-mutating, hyperjob-validating; hyperjob-certs keeps ca.crt",
            "hyperjob install ",
        ),
        "the webhook is away": (
            healthy(
                trial=DryRun(
                    InternalError(
                        make_status(500, 'failed calling webhook "x": connection refused')
                    )
                )
            ),
            FAILED,
            "does not reach",
            "start hyperjob-webhook",
        ),
        "a webhook of this release": (
            healthy(),
            OK,
            f"https://hj.svc:443, release {__version__}",
            "",
        ),
        "a webhook of another release": (
            healthy(trial=DryRun(None, "9.3.1")),
            WARNING,
            f"the webhook's release is 9.3.1, and this command line is {__version__} and the",
            "one release",
        ),
        "a webhook that tells no release": (
            healthy(trial=DryRun(None)),
            WARNING,
            "the webhook's release is unknown",
            "one release",
        ),
        "a controller of another release than the webhook": (
            healthy(leases=[lease(version="9.3.0")]),
            WARNING,
            f"webhook's release is {__version__}, and the controller is 9.3.0",
            "one release",
        ),
        "a patch release of the webhook": (
            healthy(trial=DryRun(None, f"{__version__.rpartition('.')[0]}.99")),
            OK,
            ".99",
            "",
        ),
        "a caBundle that does not verify the chain": (
            healthy(
                trial=DryRun(Invalid(make_status(500, "failed calling webhook x: x509: unknown")))
            ),
            FAILED,
            "does not verify the certificate chain",
            "hyperjob-certs inject --ca-file ca.crt",
        ),
        "the webhook refuses": (
            healthy(trial=DryRun(Invalid(make_status(422, "spec: too good")))),
            WARNING,
            "spec: too good",
            "correct the cause",
        ),
    },
    "vcjobs": {
        "no vcjob yet": (healthy(vcjob=None), FAILED, "no vcjob can be", "hyperjob install"),
        "a webhook of a process that is gone": (
            healthy(
                vcjob=DryRun(
                    InternalError(
                        make_status(
                            500,
                            'failed calling webhook "validatejob.volcano.sh": failed to call'
                            ' webhook: Post "https://volcano.svc": connection refused',
                        )
                    )
                ),
                validating=[
                    {
                        "metadata": {"name": "volcano-admission-service-jobs-validate"},
                        "webhooks": [{"name": "validatejob.volcano.sh"}],
                    },
                ],
            ),
            FAILED,
            "refuses every vcjob, since no process answers a webhook: failed calling webhook",
            "kubectl delete validatingwebhookconfigurations volcano-admission-service-jobs-",
        ),
        "a vcjob that a quota refuses": (
            healthy(vcjob=DryRun(Invalid(make_status(422, "queue default is Closed")))),
            WARNING,
            "refuses a vcjob in namespace default: queue default is Closed",
            "correct the cause",
        ),
    },
    "tenancy": {
        "one of three policies for tenants is bound": (
            healthy(tenancy=[{"metadata": {"name": "hyperjob-tenancy-queues"}}]),
            WARNING,
            "hyperjob-tenancy-priorityclasses, hyperjob-tenancy-clusters",
            "hyperjob install --with tenancy",
        ),
    },
    "trainjobs": {
        "Kubeflow Trainer beside HyperJob": (
            with_trainjobs(trainjobs=True, webhook="validator.trainer.kubeflow.org"),
            WARNING,
            "webhook configuration validator.trainer.kubeflow.org",
            "stop the controller of Kubeflow Trainer",
        ),
    },
    "controller-rights": {
        "a controller with the rights of nobody": (
            healthy(
                rights=ControllerRights("other-controller", ("list hyperjobs.x", "get leases"))
            ),
            FAILED,
            "the controller's user other-controller may not list hyperjobs.x, get leases",
            "hyperjob install --user-prefix other- --webhook-url https://hj.svc:443",
        ),
        "a controller whose roles lost rules": (
            healthy(rights=ControllerRights("hyperjob-controller", ("list hyperjobs.x",))),
            FAILED,
            "may not list hyperjobs.x",
            "hyperjob install --webhook-url https://hj.svc:443",
        ),
        "no rights are known": (
            healthy(rights=None),
            OK,
            "unknown until HyperJob is installed",
            "",
        ),
    },
    "members-reader": {
        "a member that refuses the controller": (
            healthy(
                members={
                    "east": ControllerRights("hyperjob-members", ()),
                    "west": ControllerRights("hyperjob-members", ("list nodes", "list pods")),
                }
            ),
            WARNING,
            "sums of their Clusters: west; west refuses list nodes, list pods",
            "kubectl get clusterpropagationpolicy hyperjob-members -o yaml",
        ),
        "a member that the proxy does not reach": (
            healthy(members={"west": Invalid(make_status(503, "no route to west"))}),
            WARNING,
            "1 of 1 members cannot be asked through Karmada's proxy: west; west: no route to west",
            "kubectl get --raw /apis/cluster.karmada.io/v1alpha1/clusters/west/proxy/version",
        ),
        "members that the controller does not read": (
            healthy(members={}, installation=Settings(members=MemberAccess.OFF)),
            OK,
            "reads no members",
            "",
        ),
    },
}


@pytest.mark.parametrize(
    ("check", "case"), [(check, case) for check, cases in CASES.items() for case in cases]
)
def test_a_check_says_what_is_wrong_and_the_remedy(check: str, case: str) -> None:
    observed, status, message, remedy = CASES[check][case]
    found = run(check, observed)
    assert found[0] is status, found
    assert message in found[1], found
    assert remedy in found[2], found
    assert (found[2] == "") == (status is OK), found


@pytest.mark.parametrize(("names", "said"), [((), "off"), (POLICIES, "on")])
def test_the_mode_of_tenancy_is_said(names: tuple[str, ...], said: str) -> None:
    bound = [{"metadata": {"name": name}} for name in names]
    status, message, _ = run("tenancy", healthy(tenancy=bound))
    assert (status, message.partition(":")[0]) == (OK, f"tenancy is {said}")


@pytest.mark.parametrize(
    ("plane", "said"),
    [
        (healthy(), "are not installed"),
        (with_trainjobs(trainjobs=False), "hyperjob install --with trainjobs"),
        (with_trainjobs(trainjobs=True), "managedBy trainer.kubeflow.org/trainjob-controller"),
    ],
)
def test_the_controller_of_trainjobs_is_named(plane: ObservedPlane, said: str) -> None:
    status, message, _ = run("trainjobs", plane)
    assert status == OK
    assert said in message


def test_every_check_can_go_wrong() -> None:
    covered = {
        check for check, cases in CASES.items() if any(each[1] is not OK for each in cases.values())
    }
    assert covered == set(CHECKS)


def test_what_may_not_be_read_is_unknown_and_does_not_pass() -> None:
    refusal = Forbidden(make_status(403, "clusters is forbidden"))
    report = examine(healthy(clusters=refusal))
    unknown = [each for each in report.findings if each.verdict.status is UNKNOWN]
    assert {each.check for each in unknown} == {"members-ready", "members-vcjob-api"}
    assert all("clusters is forbidden" in each.verdict.message for each in unknown)
    assert not report.passed
