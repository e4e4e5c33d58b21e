"""Member clusters: an API server with Volcano and nodes, joined in Push or Pull mode."""

import json
import sys

import yaml

from e2e.karmada.controlplane import addresses, api_server
from e2e.karmada.process import Stack
from hyperjob_sandbox.clusters import Cluster
from hyperjob_sandbox.member.cluster import QUEUES_OF_VOLCANO
from hyperjob_sandbox.member.nodes import nodes_of
from tests.support.processes import free_port, running
from tests.support.stack import LOOPBACK, kubectl

_CONTROLLERS = (
    "namespace,garbagecollector,serviceaccount-token,serviceaccount,ttl-after-finished,"
    "resourcequota"
)
_NAMESPACE = "karmada-cluster"


def start_member(stack: Stack, cluster: Cluster) -> None:
    """Start the API server of a member, Volcano in it, and what runs its pods."""
    name = cluster.name
    api_server(stack, name, controllers=_CONTROLLERS)
    member = stack.kubeconfig(name)
    stack.apply(member, stack.given.volcano_definitions)
    stack.established(member)
    queues = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": queue},
            "spec": {"weight": 1, "reclaimable": True},
        }
        for queue in QUEUES_OF_VOLCANO
    ]
    objects = {"apiVersion": "v1", "kind": "List", "items": [*queues, *nodes_of(cluster)]}
    kubectl(member, "create", "-f", "-", stdin=json.dumps(objects))
    kubectl(member, "create", "namespace", "volcano-system")
    _start_volcano(stack, name)
    command = [sys.executable, "-m", "e2e.karmada.kubelet", name, str(member)]
    label = f"kubelet-{name}"
    process = stack.exits.enter_context(running(command, log=stack.log(label)))
    stack.processes[label] = process


def _start_volcano(stack: Stack, name: str) -> None:
    common = (
        f"--kubeconfig={stack.kubeconfig(name)}",
        "--leader-elect=false",
        "--logtostderr",
        "--enable-healthz=false",
    )
    stack.start(
        f"volcano-controller-manager-{name}",
        "volcano-controller-manager",
        *common,
        f"--listen-address={LOOPBACK}:{free_port()}",
        "--controllers=job-controller,queue-controller,pg-controller,gc-controller",
    )
    settings = "installer/helm/chart/volcano/config/volcano-scheduler.conf"
    stack.start(
        f"volcano-scheduler-{name}",
        "volcano-scheduler",
        *common,
        f"--listen-address={LOOPBACK}:{free_port()}",
        f"--scheduler-conf={stack.given.volcano / settings}",
        "--schedule-period=500ms",
        "--cache-dumper=false",
    )


def join(stack: Stack, cluster: Cluster, *, pull: bool) -> None:
    """Make a cluster a member of Karmada, and wait until its resources are known."""
    if pull:
        _start_agent(stack, cluster.name)
    else:
        _register(stack, cluster)
    words = ("get", "cluster", cluster.name, "-o", "jsonpath={.status.resourceSummary.allocatable}")
    process = f"agent-{cluster.name}" if pull else "controller-manager"
    stack.until(stack.karmada, *words, gives="cpu", process=process)


def _start_agent(stack: Stack, name: str) -> None:
    stack.start(
        f"agent-{name}",
        "karmada-agent",
        f"--karmada-kubeconfig={stack.karmada}",
        f"--kubeconfig={stack.kubeconfig(name)}",
        f"--cluster-name={name}",
        f"--cluster-api-endpoint={_server(stack, name)}",
        "--leader-elect=false",
        "--cluster-status-update-frequency=5s",
        *addresses(),
    )


def _register(stack: Stack, cluster: Cluster) -> None:
    """Register a member in Push mode, with the token of an administrator in it."""
    name, member = cluster.name, stack.kubeconfig(cluster.name)
    kubectl(member, "create", "namespace", _NAMESPACE)
    kubectl(member, "create", "serviceaccount", "karmada", "-n", _NAMESPACE)
    subject = f"--serviceaccount={_NAMESPACE}:karmada"
    role = ("karmada", "--clusterrole=cluster-admin", subject)
    kubectl(member, "create", "clusterrolebinding", *role)
    lasting = ("karmada", "-n", _NAMESPACE, "--duration=24h")
    token = kubectl(member, "create", "token", *lasting).stdout.strip()
    secret = {"namespace": _NAMESPACE, "name": name}
    registered = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": cluster.labels},
        "spec": {
            "apiEndpoint": _server(stack, name),
            "syncMode": "Push",
            "secretRef": secret,
            "impersonatorSecretRef": secret,
            "region": cluster.region,
        },
    }
    authority = (stack.directory / name / "ca.crt").read_text()
    credentials = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "stringData": {"token": token, "caBundle": authority},
    }
    objects = {"apiVersion": "v1", "kind": "List", "items": [credentials, registered]}
    kubectl(stack.karmada, "apply", "--validate=false", "-f", "-", stdin=json.dumps(objects))


def _server(stack: Stack, name: str) -> str:
    config = yaml.safe_load(stack.kubeconfig(name).read_text())
    return str(config["clusters"][0]["cluster"]["server"])
