"""Each check of preflight: what it says of a state, how bad that is, and the remedy."""

from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from hyperjob import __version__
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.field import make_status
from hyperjob_core.kube.errors import Forbidden, InternalError, Invalid
from hyperjob_install.preflight import CHECKS, Status, examine
from hyperjob_install.preflight.observed import ControllerRights, DryRun, ObservedPlane
from hyperjob_install.settings import Settings
from hyperjob_install.tenancy import POLICIES
from tests.unit.install.changes import add, changed, drop, karmada, not_established, without
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


class Case(NamedTuple):
    """What a check says of a plane."""

    plane: ObservedPlane
    status: Status
    message: str
    remedy: str


def ok(message: str, plane: ObservedPlane | None = None, **state: Any) -> Case:
    return Case(plane or healthy(**state), OK, message, "")


def warning(message: str, remedy: str, plane: ObservedPlane | None = None, **state: Any) -> Case:
    return Case(plane or healthy(**state), WARNING, message, remedy)


def failed(message: str, remedy: str, plane: ObservedPlane | None = None, **state: Any) -> Case:
    return Case(plane or healthy(**state), FAILED, message, remedy)


def unreached(message: str) -> DryRun:
    """Return a dry run whose webhook the API server did not reach."""
    return DryRun(InternalError(make_status(500, f"failed calling webhook {message}")))


def refused(code: int, message: str) -> Invalid:
    return Invalid(make_status(code, message))


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


CASES: dict[str, dict[str, Case]] = {
    "karmada": {
        "a plain Kubernetes": failed(
            "not a Karmada API server", "--kubeconfig", groups=frozenset({"apps"})
        ),
        "Karmada 1.19": ok("1.19 or newer", karmada("1.19")),
        "Karmada 1.18": ok("1.18 or newer", karmada("1.18")),
        "Karmada 1.17": ok("1.17 or newer", karmada("1.17")),
        "Karmada 1.15": warning("1.15 or newer", "1.16", karmada("1.15")),
        "Karmada 1.13": warning("1.13 or newer", "1.16", karmada("1.13")),
        "Karmada 1.12": failed("older than 1.13", "upgrade", karmada("1.12")),
    },
    "hyperjob-definition": {
        "no HyperJobs": failed("is missing", "hyperjob install ", without("HyperJob")),
        "HyperJobs not served": failed(
            "not served", "kubectl describe crd hyperjobs.training.volcano.sh", not_established()
        ),
        "an older HyperJob": failed(
            "lacks spec.suspend", "hyperjob install ", changed("HyperJob", drop("spec", "suspend"))
        ),
        "a newer HyperJob": warning("it also has spec.future", "release", changed("HyperJob", add)),
    },
    "volcano-definitions": {
        "no queues": failed("queues.scheduling.volcano.sh", "hyperjob install ", without("Queue")),
        "an older Volcano": warning(
            "drops fields that newer members accept: spec.networkTopology",
            "newest Volcano",
            changed("Job", drop("spec", "networkTopology")),
        ),
    },
    "controller-leads": {
        "a controller of this release": ok("controller-0 leads"),
        "no Lease": failed(
            "there is no Lease karmada-system/hyperjob-controller",
            "Deployment hyperjob-controller",
            leases=[],
        ),
        "a Lease that is not renewed": failed(
            "renewed 7m ago, by controller-0",
            "read its log",
            leases=[lease(renewed=timedelta(minutes=7))],
        ),
        "a Lease that was given up": failed(
            "no controller leads", "Deployment hyperjob-controller", leases=[lease(holder="")]
        ),
        "a controller of another release": warning(
            "its release is 9.3.0", "one release", leases=[lease(version="9.3.0")]
        ),
        "a controller that tells no release": warning(
            "its release is unknown", "one release", leases=[lease(version="")]
        ),
    },
    "queue-admission": {
        "our queues without Volcano Global": ok("queue admission is builtin"),
        "our queues beside Volcano Global": warning(
            "its quotas have no effect", "--queue-admission auto", mutating=[volcano_global()]
        ),
        "Volcano Global is waited for and not there": failed(
            "no HyperJob starts",
            "--queue-admission auto",
            leases=[lease(admission="volcano-global")],
        ),
        "Volcano Global confirms": ok(
            "queue admission is volcano-global",
            mutating=[volcano_global()],
            leases=[lease(admission="volcano-global")],
        ),
        "a controller that does not lead has no mode": ok("until a controller leads", leases=[]),
    },
    "queue-policy": {
        "no queue policy": failed(
            "no ClusterPropagationPolicy copies queues",
            "hyperjob install ",
            policies=[{**named("other"), "spec": {}}],
        ),
        "a queue policy that gives way": failed(
            "policy theirs does not adopt queues",
            "kubectl patch clusterpropagationpolicy theirs --type=merge",
            queues=[queue(None, policy="theirs")],
            policies=[policy("theirs", None)],
        ),
        "another policy that holds the queue though ours is there": failed(
            "policy theirs",
            "kubectl patch clusterpropagationpolicy theirs",
            queues=[queue("Open", policy="theirs")],
            policies=[policy("theirs", "Abort"), policy("hyperjob-queues", "Overwrite")],
        ),
        "another policy that overwrites": ok(
            "policy theirs",
            queues=[queue("Open", policy="theirs")],
            policies=[policy("theirs", "Overwrite")],
        ),
    },
    "default-queue": {
        "no default queue": warning("does not exist", "hyperjob install ", queues=[]),
        "no default queue where jobs are checked": failed(
            "refuses jobs without it",
            "hyperjob install ",
            queues=[],
            validating=[vcjob_validation()],
        ),
        "a queue without state": warning(
            "has no state",
            "kubectl describe clusterresourcebinding default-queue",
            queues=[queue(None)],
        ),
        "a queue without state where jobs are checked": failed(
            "has no state",
            "kubectl describe clusterresourcebinding default-queue",
            queues=[queue(None)],
            validating=[vcjob_validation()],
        ),
        "a closed queue": failed("is Closed", "vcctl queue operate", queues=[queue("Closed")]),
    },
    "interpreters": {
        "no interpreters": failed(
            "hyperjob-vcjob, hyperjob-queue", "hyperjob install ", interpreters=[]
        ),
        "another release's interpreters": warning(
            "not this release's",
            "hyperjob install ",
            interpreters=[
                interpreter("hyperjob-vcjob", "Job", "retention"),
                interpreter("hyperjob-queue", "Queue", "retention"),
            ],
        ),
        "interpreters in the way": failed(
            "vcjob-configuration defines replicaResource; queue-configuration defines status",
            "hyperjob install --webhook-url https://hj.svc:443 --allow interpreters",
            interpreters=[
                interpreter("vcjob-configuration", "Job", "replicaResource", "statusReflection"),
                interpreter("queue-configuration", "Queue", "statusAggregation"),
            ],
        ),
        "an interpreter of another product in the way": failed(
            "theirs defines replicaResource; queue-configuration defines status",
            "kubectl delete resourceinterpretercustomization theirs queue-configuration",
            interpreters=[
                interpreter("theirs", "Job", "replicaResource"),
                interpreter("queue-configuration", "Queue", "statusAggregation"),
            ],
        ),
    },
    "other-interpreters": {
        "an interpreter that hides status": warning(
            "statusReflection",
            "kubectl delete resourceinterpretercustomization theirs",
            interpreters=[interpreter("theirs", "Job", "statusReflection")],
        ),
        "an interpreter that revises": warning(
            "jobs without pods",
            "kubectl delete resourceinterpretercustomization theirs",
            interpreters=[interpreter("theirs", "Job", "replicaRevision")],
        ),
        "an interpreter of another kind": ok(
            "no other", interpreters=[interpreter("theirs", "Queue", "statusReflection")]
        ),
    },
    "members-vcjob-api": {
        "members with different releases of Volcano": ok(
            "Volcano 1.12 or newer in old; Volcano 1.13 or newer in east, west;"
            " Volcano 1.14 or newer in new; Volcano without HyperNodes in bare",
            clusters=[
                volcano("new", ("config.volcano.sh/v1alpha1", "ColocationConfiguration")),
                volcano("east", ("batch.volcano.sh/v1alpha1", "CronJob")),
                volcano("west", ("batch.volcano.sh/v1alpha1", "CronJob")),
                volcano("old", ("topology.volcano.sh/v1alpha1", "HyperNode")),
                volcano("bare"),
            ],
        ),
        "a member without Volcano": warning(
            "do not serve vcjobs",
            "kubectl get cluster west",
            clusters=[cluster("east"), cluster("west", apiEnablements=[])],
        ),
        "batch/v1 Jobs are no vcjobs": failed(
            "do not serve vcjobs",
            "kubectl get cluster east",
            clusters=[
                cluster(
                    "east",
                    apiEnablements=[{"groupVersion": "batch/v1", "resources": [{"kind": "Job"}]}],
                )
            ],
        ),
    },
    "members-ready": {
        "no members": failed("no cluster has joined", "karmadactl join", clusters=[]),
        "a member is down": warning(
            "1 of 2 members not ready: west",
            "kubectl describe cluster west",
            clusters=[cluster("east"), cluster("west", conditions=[])],
        ),
        "all members are down": failed(
            "1 of 1 member not ready: east",
            "kubectl describe cluster east",
            clusters=[cluster("east", conditions=[])],
        ),
    },
    "webhook-answers": {
        "a controller without a version is not compared": ok(
            "admitted a HyperJob in a dry run", leases=[lease(version="")]
        ),
        "a controller that no longer leads is not compared": ok(
            "admitted a HyperJob in a dry run",
            leases=[lease(version="9.3.0", renewed=timedelta(hours=1))],
        ),
        "a name that the certificate lacks": failed(
            "the certificate lacks the name under which the API server calls the webhook",
            "--karmada-kubeconfig karmada.config --name hj.svc --inject",
            trial=unreached(
                "x: tls: failed to verify certificate: x509:"
                " certificate is valid for a.svc, not hj.svc"
            ),
        ),
        "nothing to answer for": failed("no Hyper", "hyperj", trial=None),
        "nothing that answers": failed(
            "are missing: hyperjob-mutating, hyperjob-validating; hyperjob-certs keeps ca.crt",
            "hyperjob install ",
            mutating=[],
            validating=[],
        ),
        "the webhook is away": failed(
            "does not reach", "start hyperjob-webhook", trial=unreached('"x": connection refused')
        ),
        "a webhook of this release": ok(f"https://hj.svc:443, release {__version__}"),
        "a webhook of another release": warning(
            f"the webhook's release is 9.3.1, and this command line is {__version__} and the",
            "one release",
            trial=DryRun(None, "9.3.1"),
        ),
        "a webhook that tells no release": warning(
            "the webhook's release is unknown", "one release", trial=DryRun(None)
        ),
        "a controller of another release than the webhook": warning(
            f"webhook's release is {__version__}, and the controller is 9.3.0",
            "one release",
            leases=[lease(version="9.3.0")],
        ),
        "a patch release of the webhook": ok(
            ".99", trial=DryRun(None, f"{__version__.rpartition('.')[0]}.99")
        ),
        "a caBundle that does not verify the chain": failed(
            "does not verify the certificate chain",
            "hyperjob-certs inject --ca-file ca.crt",
            trial=unreached("x: x509: unknown"),
        ),
        "the webhook refuses": warning(
            "spec: too good", "correct the cause", trial=DryRun(refused(422, "spec: too good"))
        ),
    },
    "vcjobs": {
        "no vcjob yet": failed("no vcjob can be", "hyperjob install", vcjob=None),
        "a webhook of a process that is gone": failed(
            "refuses every vcjob, since no process answers a webhook: failed calling webhook",
            "kubectl delete validatingwebhookconfigurations volcano-admission-service-jobs-",
            vcjob=unreached(
                '"validatejob.volcano.sh": failed to call webhook: Post "https://volcano.svc":'
                " connection refused"
            ),
            validating=[
                named("volcano-admission-service-jobs-validate")
                | {"webhooks": [{"name": "validatejob.volcano.sh"}]}
            ],
        ),
        "a vcjob that a quota refuses": warning(
            "refuses a vcjob in namespace default: queue default is Closed",
            "correct the cause",
            vcjob=DryRun(refused(422, "queue default is Closed")),
        ),
    },
    "tenancy": {
        "one of three policies for tenants is bound": warning(
            "hyperjob-tenancy-priorityclasses, hyperjob-tenancy-clusters",
            "hyperjob install --with tenancy",
            tenancy=[named("hyperjob-tenancy-queues")],
        ),
        "no policy for tenants is bound": ok("tenancy is off"),
        "all policies for tenants are bound": ok(
            "tenancy is on", tenancy=[named(each) for each in POLICIES]
        ),
    },
    "trainjobs": {
        "no TrainJobs": ok("are not installed"),
        "TrainJobs that nobody runs": ok(
            "hyperjob install --with trainjobs", with_trainjobs(trainjobs=False)
        ),
        "TrainJobs that HyperJob runs": ok(
            "managedBy trainer.kubeflow.org/trainjob-controller", with_trainjobs(trainjobs=True)
        ),
        "Kubeflow Trainer beside HyperJob": warning(
            "webhook configuration validator.trainer.kubeflow.org",
            "stop the controller of Kubeflow Trainer",
            with_trainjobs(trainjobs=True, webhook="validator.trainer.kubeflow.org"),
        ),
    },
    "controller-rights": {
        "a controller with the rights of nobody": failed(
            "the controller's user other-controller may not list hyperjobs.x, get leases",
            "hyperjob install --user-prefix other- --webhook-url https://hj.svc:443",
            rights=ControllerRights("other-controller", ("list hyperjobs.x", "get leases")),
        ),
        "a controller whose roles lost rules": failed(
            "may not list hyperjobs.x",
            "hyperjob install --webhook-url https://hj.svc:443",
            rights=ControllerRights("hyperjob-controller", ("list hyperjobs.x",)),
        ),
        "no rights are known": ok("unknown until HyperJob is installed", rights=None),
    },
    "members-reader": {
        "a member that refuses the controller": warning(
            "sums of their Clusters: west; west refuses list nodes, list pods",
            "kubectl get clusterpropagationpolicy hyperjob-members -o yaml",
            members={
                "east": ControllerRights("hyperjob-members", ()),
                "west": ControllerRights("hyperjob-members", ("list nodes", "list pods")),
            },
        ),
        "a member that the proxy does not reach": warning(
            "1 of 1 members cannot be asked through Karmada's proxy: west; west: no route to west",
            "kubectl get --raw /apis/cluster.karmada.io/v1alpha1/clusters/west/proxy/version",
            members={"west": refused(503, "no route to west")},
        ),
        "members that the controller does not read": ok(
            "reads no members", members={}, installation=Settings(members=MemberAccess.OFF)
        ),
    },
}


@pytest.mark.parametrize(
    ("check", "case"), [(check, case) for check, cases in CASES.items() for case in cases]
)
def test_a_check_says_what_is_wrong_and_the_remedy(check: str, case: str) -> None:
    plane, *wanted = CASES[check][case]
    status, message, remedy = run(check, plane)
    assert status is wanted[0], message
    assert wanted[1] in message
    assert wanted[2] in remedy
    assert (remedy == "") == (status is OK), remedy


def test_every_check_can_go_wrong() -> None:
    covered = {
        check
        for check, cases in CASES.items()
        if any(each.status is not OK for each in cases.values())
    }
    assert covered == set(CHECKS)


def test_what_may_not_be_read_is_unknown_and_does_not_pass() -> None:
    refusal = Forbidden(make_status(403, "clusters is forbidden"))
    report = examine(healthy(clusters=refusal))
    unknown = [each for each in report.findings if each.verdict.status is UNKNOWN]
    assert {each.check for each in unknown} == {"members-ready", "members-vcjob-api"}
    assert all("clusters is forbidden" in each.verdict.message for each in unknown)
    assert not report.passed
