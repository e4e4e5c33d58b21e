"""The names of the API: groups, labels, annotations, condition types, names of sub-jobs."""

from sys import intern
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string_map

GROUP: Final = "training.volcano.sh"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "HyperJob"
PLURAL: Final = "hyperjobs"

VCJOB_API_VERSION: Final = "batch.volcano.sh/v1alpha1"
VCJOB_KIND: Final = "Job"
CLAIM_API_VERSION: Final = "v1"
CLAIM_KIND: Final = "PersistentVolumeClaim"

# The first two are the Go controller's, by which its sub-jobs are recognised and adopted.
LABEL_HYPERJOB: Final = "volcano.sh/hyperjob-name"
LABEL_REPLICATED_JOB: Final = "volcano.sh/replicatedjob-name"
TASK_PRIORITY: Final = "volcano.sh/task-priority"
"""The annotation of pods by which Volcano takes those of a vcjob in order, the greatest first."""
LABEL_INDEX: Final = f"{GROUP}/job-index"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"

# On a HyperJob: the webhook replaces an empty value with its release, for `hyperjob preflight`.
WEBHOOK_VERSION: Final = f"{GROUP}/webhook-version"

# On the controller's Lease, for clients that ask which controller leads.
CONTROLLER_VERSION: Final = f"{GROUP}/controller-version"
CONTROLLER_USER: Final = f"{GROUP}/controller-user"
QUEUE_ADMISSION: Final = f"{GROUP}/queue-admission"
CONTROLLER_SETTINGS: Final = f"{GROUP}/controller-settings"
# For the next leader: the pods of stopped sub-jobs, which no other object of Karmada shows.
ENDING_PODS: Final = f"{GROUP}/ending-pods"
USAGE_COUNTED: Final = f"{GROUP}/usage-counted"

# The affinity name is the only field that Karmada copies unchanged from a PropagationPolicy to its
# ResourceBinding: it marks the ResourceBindings of HyperJobs, and those that a gang must hold.
AFFINITY_GATED: Final = "hyperjob-gang"
AFFINITY_HELD: Final = "hyperjob-held"
AFFINITY_UNGATED: Final = "hyperjob"

# On a template that a PropagationPolicy claims: Karmada then creates its ResourceBinding.
LABEL_CLAIMED: Final = "propagationpolicy.karmada.io/permanent-id"
CLAIMED_NAMESPACE: Final = "propagationpolicy.karmada.io/namespace"
CLAIMED_NAME: Final = "propagationpolicy.karmada.io/name"
# On an object without a namespace that a ClusterPropagationPolicy claims.
LABEL_CLAIMED_WIDELY: Final = "clusterpropagationpolicy.karmada.io/permanent-id"

CLAIMED_WIDELY_NAME: Final = "clusterpropagationpolicy.karmada.io/name"

# On a PropagationPolicy that keeps the copies of a PersistentVolumeClaim; its value is empty.
LABEL_KEEPS_CLAIM: Final = f"{GROUP}/keeps-claim"
# In `spec.requiredBy` of the ResourceBinding of a claim that a user's policy propagates. The name
# of a ResourceBinding ends with a kind: no ResourceBinding has this one.
KEEPS_CLAIM: Final = "hyperjob"

LABEL_BINDING: Final = f"{GROUP}/binding"
LABEL_BINDING_VALUE: Final = "hyperjob"
GATE: Final = f"{GROUP}/gate"
GATE_HELD: Final = "held"
GATE_OPEN: Final = "open"

# On a vcjob: the generation of its world, and a digest of the plugins' changes.
WORLD: Final = f"{GROUP}/world"

# On the pods of a sub-job: the devices of their resource claims by device class, as `a=2,b=1`.
DEVICES: Final = f"{GROUP}/devices"

# On a vcjob: the parts of shared devices that no cluster reports, as `a,b`, which the interpreter
# leaves out of the ResourceBinding: of these Volcano Global lets no queue use any.
UNCOUNTED: Final = f"{GROUP}/uncounted"

# On a vcjob: how often the controller has had Karmada apply it again, which any change causes.
ASKED_AGAIN: Final = f"{GROUP}/asked-again"

# On a HyperJob: a request, "<token> [sub-job ...]". The controller handles a token once and records
# it in the status: neither another pass nor a restarted controller handles it again.
RESTART_REQUEST: Final = f"{GROUP}/restart"
MIGRATE_REQUEST: Final = f"{GROUP}/migrate"
# On a HyperJob: the arguments of its program, for people; the SDK and `hyperjob run` write them.
ARGUMENTS: Final = f"{GROUP}/arguments"
MAX_TOKEN: Final = 253
"""The greatest number of characters of a token."""

FIELD_MANAGER: Final = "hyperjob-controller"
LEASE_NAME: Final = "hyperjob-controller"
LEASE_NAMESPACE: Final = "karmada-system"
"""The namespace of the Karmada API server for the controller's Lease and the ServiceAccounts."""

CONDITION_COMPLETED: Final = "Completed"
CONDITION_FAILED: Final = "Failed"
CONDITION_QUOTA_RESERVED: Final = "QuotaReserved"
CONDITION_ADMITTED: Final = "Admitted"
CONDITION_RUNNING: Final = "Running"
CONDITION_SUSPENDED: Final = "Suspended"
CONDITION_DEGRADED: Final = "Degraded"
CONDITION_RECONCILING: Final = "Reconciling"
CONDITION_STALLED: Final = "Stalled"


def child_name(hyperjob: str, replicated_job: str, index: int) -> str:
    """Return the name that a sub-job's vcjob and policy share."""
    return intern(f"{hyperjob}-{replicated_job}-{index}")  # one string in memory for its many uses


def lease_name(namespace: str | None = None) -> str:
    """Return the Lease of the controllers of all namespaces, or of one namespace."""
    return f"{LEASE_NAME}-{namespace}" if namespace else LEASE_NAME


def task_name(task: Object, index: int) -> str:
    """Return the name of a task of a vcjob; Volcano gives one to a task without a name."""
    name = task.get("name")
    return name if isinstance(name, str) and name else f"default{index}"


def binding_name(template: str, *, kind: str = VCJOB_KIND) -> str:
    """Return the name that Karmada gives the ResourceBinding of a vcjob or another template."""
    return f"{template}-{kind}".lower().replace(":", ".")


BINDING_NAMESPACE: Final = "resourcebinding.karmada.io/namespace"
BINDING_NAME: Final = "resourcebinding.karmada.io/name"
_SAFE_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193


def works_namespace(cluster: str) -> str:
    """Return the namespace that has the Works of a cluster."""
    return f"karmada-es-{cluster}"


def work_name(template: str, namespace: str, *, kind: str = VCJOB_KIND) -> str:
    """Return the name that Karmada gives the Work of a vcjob or another template, in any cluster.

    Source: GenerateWorkName in Karmada's pkg/util/names.
    """
    plain = template.replace(":", ".").lower()
    key = f"{namespace}-{plain}-{kind}" if namespace else f"{plain}-{kind}"
    return f"{plain}-{safe_hash(key.lower())}"


def bound_to(work: Object) -> tuple[str, str]:
    """Return namespace and name of the ResourceBinding of a Work; empty where it has none."""
    notes = string_map(at(work, "metadata", "annotations"))
    return notes.get(BINDING_NAMESPACE, ""), notes.get(BINDING_NAME, "")


def safe_hash(text: str) -> str:
    """Return Karmada's hash of a text, in letters that make no words."""
    digest = _FNV_OFFSET
    for byte in text.encode():
        digest = ((digest ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return "".join(_SAFE_ALPHABET[ord(digit) % len(_SAFE_ALPHABET)] for digit in str(digest))


_DOMAINS: Final = ("karmada.io", "volcano.sh")
_OF_A_JOB: Final = "volcano.sh/"


def domain_of(key: str) -> str:
    """Return `karmada.io` or `volcano.sh` for a key in these domains; empty for other keys."""
    prefix, slash, _ = key.partition("/")
    if not slash:
        return ""
    return next((d for d in _DOMAINS if prefix == d or prefix.endswith(f".{d}")), "")


def may_be_given(key: str) -> bool:
    """Return whether a user may give a label or annotation of this key to sub-jobs."""
    return not domain_of(key) or key.startswith(_OF_A_JOB)
