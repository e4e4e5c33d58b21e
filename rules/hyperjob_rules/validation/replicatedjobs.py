"""Validation of a replicatedJob: its name, its clusters, its metadata and its template."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.childmetadata import domain_of, may_be_given
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GROUP, LABEL_HYPERJOB, LABEL_REPLICATED_JOB
from hyperjob_rules.validation.forms import check, validate_annotations, validate_labels
from hyperjob_rules.validation.job import validate_job_spec
from hyperjob_rules.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    REQUIRED,
    WARNING,
    Report,
    rule,
)
from hyperjob_rules.validation.split import validate_split

MAX_CLUSTER_NAME: Final = 48
_OWN: Final = (LABEL_HYPERJOB, LABEL_REPLICATED_JOB)
_OWN_DOMAIN: Final = f"{GROUP}/"
_CLAIM_DOMAINS: Final = ("propagationpolicy.karmada.io/", "clusterpropagationpolicy.karmada.io/")

NO_CLUSTERS = rule(
    "X8.no-clusters",
    REQUIRED,
    "must name at least one cluster when `clusterPolicy` is Required",
    "sub-jobs may only go to listed clusters, and none is listed",
    "list the clusters, or use clusterPolicy Preferred",
)
CLUSTER_TWICE = rule(
    "X8.cluster-twice", DUPLICATE, "", "a cluster is listed twice", "keep it where it comes first"
)
CLUSTER_LENGTH = rule(
    "X8.cluster-length",
    INVALID,
    f"must be no more than {MAX_CLUSTER_NAME} characters",
    "the name is longer than that of any Karmada cluster",
    "correct it; `kubectl get clusters` lists the names",
)
OWN_LABEL = rule(
    "X3.own-label",
    FORBIDDEN,
    "is set by the controller",
    "templateMetadata sets a label or annotation by which sub-jobs are recognised",
    "remove it",
)
CLAIM = rule(
    "X3.claim",
    FORBIDDEN,
    "is set by Karmada, and binds a sub-job to another policy than that of its cluster and gate",
    "templateMetadata was copied from a vcjob, with labels or annotations of Karmada",
    "remove it",
)
FOREIGN = rule(
    "X3.foreign",
    FORBIDDEN,
    "templateMetadata may set no key of {domain} but those with the prefix volcano.sh/",
    "Karmada or Volcano act on the key in a way that gate, policy or queue cannot undo",
    "remove it",
)
MANY_CLUSTERS = rule(
    "X8.many-clusters",
    WARNING,
    "lists {count} clusters, and maxDomains allows {limit}; the last may never be used",
    "clusterNames is longer than maxDomains",
    "shorten the list, or raise maxDomains",
)


def validate_replicated_job(
    job: Object, path: Path, report: Report, *, max_domains: int | None
) -> None:
    """Validate one replicatedJob without regard to the others."""
    _validate_clusters(job, path, report, max_domains=max_domains)
    metadata = job.get("templateMetadata")
    if metadata:
        _validate_template_metadata(metadata, path.child("templateMetadata"), report)
    validate_job_spec(job.get("templateSpec") or {}, path.child("templateSpec"), report)
    if job.get("splitPolicy"):
        validate_split(job, path, report, max_domains=max_domains)


def _validate_clusters(job: Object, path: Path, report: Report, *, max_domains: int | None) -> None:
    clusters = job.get("clusterNames") or []
    at = path.child("clusterNames")
    seen: set[str] = set()
    for index, cluster in enumerate(clusters):
        if cluster in seen:
            report.add(CLUSTER_TWICE, at.index(index), cluster)
        elif len(cluster) > MAX_CLUSTER_NAME:
            report.add(CLUSTER_LENGTH, at.index(index), cluster)
        else:
            check(formats.dns1123_label, cluster, at, report, index)
        seen.add(cluster)
    if job.get("clusterPolicy") == "Required":
        if not clusters:
            report.add(NO_CLUSTERS, at)
        elif max_domains is not None and 0 < max_domains < len(clusters):
            report.warn(MANY_CLUSTERS, at, count=len(clusters), limit=max_domains)


def _validate_template_metadata(metadata: Object, path: Path, report: Report) -> None:
    """Refuse labels and annotations by which controllers act on a sub-job."""
    labels = metadata.get("labels") or {}
    validate_labels(labels, path.child("labels"), report)
    annotations = metadata.get("annotations") or {}
    validate_annotations(annotations, path.child("annotations"), report)
    for field, keys in (("labels", labels), ("annotations", annotations)):
        for key in keys:
            if key in _OWN or key.startswith(_OWN_DOMAIN):
                report.add(OWN_LABEL, path.child(field).key(key))
            elif key.startswith(_CLAIM_DOMAINS):
                report.add(CLAIM, path.child(field).key(key))
            elif not may_be_given(key):
                report.add(FOREIGN, path.child(field).key(key), domain=domain_of(key))
