"""One replicatedJob: its name, where its sub-jobs may go, and their template."""

from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from hyperjob.api.names import (
    LABEL_ATTEMPT,
    LABEL_HYPERJOB,
    LABEL_INDEX,
    LABEL_REPLICATED_JOB,
)
from webhook.validation.forms import check, validate_annotations, validate_labels
from webhook.validation.job import validate_job_spec
from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    WARNING,
    rule,
)
from webhook.validation.split import validate_split

CLUSTER_POLICIES: Final = ("Preferred", "Required")
MAX_CLUSTER_NAME: Final = 48
OWN_LABELS: Final = (LABEL_HYPERJOB, LABEL_REPLICATED_JOB, LABEL_INDEX, LABEL_ATTEMPT)

NAME_MISSING = rule(
    "X3",
    REQUIRED,
    "",
    "a replicatedJob has no name",
    "give it a name; the names of its sub-jobs are made from it",
)
REPLICAS = rule(
    "X6",
    INVALID,
    "must be greater than or equal to 1",
    "a replicatedJob has no sub-jobs",
    "use 1 or more, or remove the replicatedJob",
)
TEMPLATE_MISSING = rule(
    "V1",
    REQUIRED,
    "",
    "a replicatedJob has no template for its sub-jobs",
    "add templateSpec with at least one task",
)
CLUSTER_POLICY = rule(
    "X8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "clusterPolicy is not one that is known",
    "use Preferred or Required",
)
NO_CLUSTERS = rule(
    "X8",
    REQUIRED,
    "must name at least one cluster when `clusterPolicy` is Required",
    "sub-jobs may only go to listed clusters, and none is listed",
    "list the clusters, or use clusterPolicy Preferred",
)
CLUSTER_EMPTY = rule(
    "X8", REQUIRED, "", "the name of a cluster is empty", "write the name of a Karmada cluster"
)
CLUSTER_TWICE = rule(
    "X8", DUPLICATE, "", "a cluster is listed twice", "keep it where it comes first"
)
CLUSTER_LENGTH = rule(
    "X8",
    INVALID,
    f"must be no more than {MAX_CLUSTER_NAME} characters",
    "the name is longer than that of any Karmada cluster",
    "correct it; `kubectl get clusters` lists the names",
)
OWN_LABEL = rule(
    "X3",
    FORBIDDEN,
    "is set by the controller",
    "templateMetadata sets a label by which sub-jobs are recognised",
    "remove the label",
)
MANY_CLUSTERS = rule(
    "X8",
    WARNING,
    "lists {count} clusters, and maxDomains allows {limit}; the last may never be used",
    "clusterNames is longer than maxDomains",
    "shorten the list, or raise maxDomains",
)


def validate_replicated_job(
    job: Object, path: Path, report: Report, *, max_domains: int | None
) -> None:
    """Check one replicatedJob; what it has to do with the others is checked elsewhere."""
    name = job.get("name") or ""
    if not name:
        report.add(NAME_MISSING, path.child("name"))
    else:
        check(formats.dns1123_label, name, path, report, "name")
    replicas = job.get("replicas")
    if replicas is not None and replicas < 1:
        report.add(REPLICAS, path.child("replicas"), replicas)
    _validate_clusters(job, path, report, max_domains=max_domains)
    metadata = job.get("templateMetadata")
    if metadata:
        _validate_template_metadata(metadata, path.child("templateMetadata"), report)
    template = job.get("templateSpec")
    if template is None:
        report.add(TEMPLATE_MISSING, path.child("templateSpec"))
        return
    validate_job_spec(template, path.child("templateSpec"), report)
    if job.get("splitPolicy"):
        validate_split(job, path, report, max_domains=max_domains)


def _validate_clusters(job: Object, path: Path, report: Report, *, max_domains: int | None) -> None:
    clusters = job.get("clusterNames") or []
    at = path.child("clusterNames")
    seen: set[str] = set()
    for index, cluster in enumerate(clusters):
        if not cluster:
            report.add(CLUSTER_EMPTY, at.index(index))
        elif cluster in seen:
            report.add(CLUSTER_TWICE, at.index(index), cluster)
        elif len(cluster) > MAX_CLUSTER_NAME:
            report.add(CLUSTER_LENGTH, at.index(index), cluster)
        else:
            check(formats.dns1123_label, cluster, at, report, index)
        seen.add(cluster)
    policy = job.get("clusterPolicy")
    if policy and policy not in CLUSTER_POLICIES:
        at_policy = path.child("clusterPolicy")
        report.unsupported(CLUSTER_POLICY, at_policy, policy, CLUSTER_POLICIES)
    if policy == "Required":
        if not clusters:
            report.add(NO_CLUSTERS, at)
        elif max_domains is not None and 0 < max_domains < len(clusters):
            report.warn(MANY_CLUSTERS, at, count=len(clusters), limit=max_domains)


def _validate_template_metadata(metadata: Object, path: Path, report: Report) -> None:
    labels = metadata.get("labels") or {}
    validate_labels(labels, path.child("labels"), report)
    for label in OWN_LABELS:
        if label in labels:
            report.add(OWN_LABEL, path.child("labels").key(label))
    validate_annotations(metadata.get("annotations") or {}, path.child("annotations"), report)
