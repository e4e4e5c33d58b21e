"""Names that earlier releases had, and what to use now: the one table that answers an old name.

`hyperjob` answers a removed option from it, the processes a removed setting, and the chart a
removed value, from a copy in `charts/hyperjob/files/removed.yaml`.
"""

from collections.abc import Mapping
from typing import Final

EVERY_COMMAND: Final = ""
"""The key of options that several commands had."""

_DRY_RUN: Final = "kubectl hyperjob why NAME shows the state before the change"
_PUBLISHED: Final = "the plan uses the setting that the controller publishes on its Lease"
_SERVES_VCJOBS: Final = "Karmada too places a vcjob only on clusters that serve vcjobs"
_HAS_SUMMARY: Final = "Karmada too finds no room on a cluster without a resourceSummary"
_CLUSTERED: Final = "Queues and Clusters have no namespace"
_PROCESSES: Final = ("webhook", "controller")
_NAMESPACE: Final = "the namespace is karmada-system"

OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    EVERY_COMMAND: {
        "--lease-namespace": f"{_NAMESPACE} of the Karmada API server",
        "--request-timeout": "a request ends after 30s; `timeout 5s hyperjob ...` ends a command",
    },
    **{
        each: {"-n": _CLUSTERED, "--namespace": _CLUSTERED}
        for each in ("queue close", "queue open", "sandbox lose", "sandbox restore")
    },
    "after-restore": {
        "-n": "the command compares all namespaces",
        "--namespace": "the command compares all namespaces",
    },
    "debug": {
        "--context": "set the namespace with -n, or current-context in the kubeconfig",
        "--kubeconfig": "set the namespace with -n, or KUBECONFIG",
    },
    "credentials renew": {"--output": "the output is text", "-o": "the output is text"},
    "credentials delete": {"--output": "the output is text", "-o": "the output is text"},
    "demo": {"--timeout": "the demo fails after 10 minutes without a change of any HyperJob"},
    "install": {
        "--controller-user": "the user is PREFIXcontroller: --user-prefix PREFIX",
        "--certs-user": "the user is PREFIXcerts: --user-prefix PREFIX",
        "--webhook-user": "the user is PREFIXwebhook: --user-prefix PREFIX",
        "--ui-user": "the user is PREFIXui: --with ui --user-prefix PREFIX",
        "--progress-user": "the user is PREFIXmembers: --members logs --user-prefix PREFIX",
        "--tenancy": "use --with tenancy",
        "--no-tenancy": "it is the default",
        "--progress": "use --members logs",
        "--no-progress": "it is the default",
        "--secret-warnings": "use --with secret-warnings",
        "--no-secret-warnings": "it is the default",
        "--timeout": "the command waits up to 60s for each CRD",
        "--replace": "use --allow interpreters",
        "--force-conflicts": "use --allow conflicts",
        "--allow-field-loss": "use --allow field-loss",
    },
    "uninstall": {"--timeout": "the command waits up to 60s for each CRD"},
    "logs": {
        "--raw": "output into a pipe is unchanged: hyperjob logs NAME | cat",
        "--max-log-requests": "the command follows up to 200 logs",
    },
    "simulate": {
        "--format": "set trace.format in the file of --scenario",
        "--limit": "set trace.limit in the file of --scenario",
        "--shape": "set shape in the file of --scenario",
        "--queue": "set queues in the file of --scenario",
        "--urgent": "set urgent in the file of --scenario",
        "--estimates": "set estimates.share in the file of --scenario",
        "--estimate-error": "set estimates.error in the file of --scenario",
        "--pod-mtbf": "set failures.pod in the file of --scenario",
        "--node-mtbf": "set failures.node in the file of --scenario",
        "--node-repair": "set failures.nodeRepair in the file of --scenario",
        "--cluster-mtbf": "set failures.cluster in the file of --scenario",
        "--cluster-repair": "set failures.clusterRepair in the file of --scenario",
        "--checkpoint": "set checkpointMinutes in the file of --scenario",
        "--max-domains": "set maxDomains in the file of --scenario",
        "--compare": "use --policy with several policies, separated by commas, or all",
    },
    "suspend": {
        "--wait": "use hyperjob wait NAME --for phase=Suspended",
        "--no-wait": "it is the default",
        "--timeout": "use hyperjob wait NAME --for phase=Suspended --timeout DURATION",
        "--dry-run": _DRY_RUN,
    },
    "resume": {
        "--wait": "use hyperjob wait NAME --for phase=Running,Completed",
        "--no-wait": "it is the default",
        "--timeout": "use hyperjob wait NAME --for phase=Running,Completed --timeout DURATION",
        "--dry-run": _DRY_RUN,
    },
    "restart": {"--dry-run": _DRY_RUN},
    "migrate": {"--dry-run": _DRY_RUN},
    "plan": {
        "--queue-admission": f"{_PUBLISHED}; in a file of --clusters set volcanoGlobal.enabled",
        "--cluster-status-lag": _PUBLISHED,
        "--require-vcjob-api": _SERVES_VCJOBS,
        "--no-require-vcjob-api": _SERVES_VCJOBS,
        "--require-resource-summary": _HAS_SUMMARY,
        "--no-require-resource-summary": _HAS_SUMMARY,
    },
}
"""The removed options of each command, and what users do instead."""

SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "hyperjob-controller": {
        "context": "set current-context in the kubeconfig",
        "in_flight": "the controller makes up to 50 writes concurrently",
        "silence_timeout": "Karmada applies a silent sub-job again after 30 seconds",
        "splitter_timeout": "a call of the splitter ends after 10 seconds",
        "failure_causes": "the controller reads failed pods where it has the right to",
        "progress": "use --members logs",
        "progress_kubeconfig": "use --members-kubeconfig",
        "progress_qps": "the controller reads up to 40 logs per second",
        "require_vcjob_api": _SERVES_VCJOBS,
        "require_resource_summary": _HAS_SUMMARY,
        "trainjobs": "use hyperjob install --without trainjobs (setup.trainjobs in the chart)",
        "leader_elect_namespace": f"{_NAMESPACE} of the Karmada API server",
        "leader_elect_name": "the Lease is hyperjob-controller",
    },
    "hyperjob-webhook": {
        "tls_reload_interval": "the webhook checks its certificate files every second",
        "request_timeout": "a review ends after 4 seconds",
        "max_requests_inflight": "the webhook reads up to 128 bodies concurrently",
        "max_connections": "the webhook keeps up to 1024 connections open",
        "max_connections_per_peer": "the webhook keeps up to 512 connections of one peer open",
        "shutdown_grace_period": "reviews in flight have 10 seconds after shutdown-delay",
    },
}
"""The removed settings of each process, in the form of their fields, and what holds instead."""

VALUES: Final[Mapping[str, str]] = {
    "nameOverride": "set fullnameOverride",
    "karmada.leaseNamespace": f"{_NAMESPACE} of the Karmada API server",
    "setup.forceConflicts": "set setup.allow to [conflicts]",
    "setup.replace": "set setup.allow to [interpreters]",
    "setup.deadlineSeconds": "a hook Job ends after 300 seconds",
    "certificates.days": "a certificate is valid for 90 days",
    "renewal.schedule": "the CronJob runs every six hours",
    "renewal.tokenDays": "a token is valid for 3 days, or as long as the API server allows",
    "webhook.shutdownDelaySeconds": "a pod serves on for 5 seconds after SIGTERM",
    "webhook.service.port": "the port is 443",
    "metrics.serviceMonitor.labels": "set metrics.labels",
    "metrics.prometheusRule.labels": "set metrics.labels",
    "metrics.serviceMonitor.interval": "the interval is that of Prometheus",
    "ui.service.port": "the port is 80",
    "ui.topologySpreadConstraints": "the page has one pod",
    "controller.progress": "set controller.members to logs",
    "controller.workers": "set controller.settings.workers",
    **{f"{each}.logLevel": f"set {each}.settings.log-level" for each in _PROCESSES},
    **{f"{each}.extraEnv": f"set {each}.settings" for each in _PROCESSES},
    **{f"{each}.extraVolumeMounts": f"set mountPath in {each}.extraVolumes" for each in _PROCESSES},
    **{
        f"{each}.topologySpreadConstraints": "pods are spread over nodes and zones where possible;"
        f" set {each}.affinity for more"
        for each in _PROCESSES
    },
    **{f"{each}.podDisruptionBudget": "it always exists" for each in _PROCESSES},
    **{f"{each}.podLabels": "set commonLabels" for each in (*_PROCESSES, "ui")},
    **{f"{each}.podAnnotations": "set podAnnotations" for each in (*_PROCESSES, "ui")},
    **{
        f"{each}.settings.{name.replace('_', '-')}": instead
        for each in _PROCESSES
        for name, instead in SETTINGS[f"hyperjob-{each}"].items()
    },
}
"""The removed values of the chart, with dots between keys, and what users set instead."""


def removed_option(command: str, option: str) -> str:
    """Return what to use in place of a removed option of a command; empty for other options."""
    found = OPTIONS.get(command, {}).get(option) or OPTIONS[EVERY_COMMAND].get(option)
    return f"{option} was removed: {found}" if found else ""


def removed_setting(process: str, name: str, *, given: str) -> str:
    """Return what holds in place of a removed setting, `given` as the user wrote it; or empty."""
    found = SETTINGS.get(process, {}).get(name)
    return f"{given} was removed: {found}" if found else ""
