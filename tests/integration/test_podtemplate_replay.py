"""The corpus of pod templates as dry-run Pods: a real API server says what the corpus says.

Runs where KUBEBUILDER_ASSETS names a kube-apiserver; field, type of cause and message are compared.
"""

import json
import os
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, Final

import pytest
import yaml

from hyperjob_core.api.defaults import completed
from tests.support.controlplane import ControlPlane
from tests.unit.rules.test_validation_corpus import CASES, SHORT, Case

pytestmark = pytest.mark.skipif(
    "KUBEBUILDER_ASSETS" not in os.environ, reason="only a real API server knows its own rules"
)

Cause = tuple[str, str, str]
Post = Callable[[str, dict[str, Any]], dict[str, Any]]

TEMPLATE: Final = SHORT["template"] + "."
OF_KUBERNETES: Final = ("V8", "V15")

# Kubernetes names some fields as nobody can write them; ours are the fields as they are written.
FIELDS: Final = (
    (re.compile(r"\.persistentDisk\b"), ".gcePersistentDisk"),
    (re.compile(r"\.iscsi\.initiatorname$"), ".iscsi.initiatorName"),
    (re.compile(r"\.HostIPC$"), ".hostIPC"),
    (re.compile(r"\.securityContext\.shareProcessNamespace$"), ".shareProcessNamespace"),
    (re.compile(r"\.projected\.(sources\[\d+\]\.\w+\.)?path$"), ".projected.path"),
    (re.compile(r"\.volumeMounts(\[\d+\])?\.(?!name|mountPath)"), ".volumeMounts."),
)
# Texts that changed from one minor version to the next, and what only one side adds.
TEXTS: Final = (
    (re.compile(r';? ?did you mean "[^"]*"\?'), ""),
    (re.compile(r"(Invalid value: )\{.*?\}(?=: [a-z])"), r"\1{…}"),
    (re.compile(r"must be 'NotRequired' when pod "), "must be 'NotRequired' when "),
    (re.compile(r"when `(pod\.Spec\.HostUsers|hostUsers)` is"), "when `hostUsers` is"),
    (re.compile(r"claims cannot be set"), "claims may not be set"),
    (re.compile(r"Required value: cannot be empty"), "Required value"),
    (re.compile(r"a (valid label key|qualified name) must consist"), "a name must consist"),
    (re.compile(r"'_', '-' or '\.', and must start"), "'-' or '.', and must start"),
    (re.compile(r"ephemeral containers not allowed in pod template"), "cannot be set on create"),
    (
        re.compile(r'supported values: ("MountOption", )?"Recursive"'),
        'supported values: "Recursive"',
    ),
    (re.compile(r"regex used for validation is '.*'\)"), "regex used for validation is …)"),
    (re.compile(r":\s*$"), ""),
)
OLDER: Final = "an older version that members may have refuses it"
GATE: Final = "the feature is off in this API server, which drops the field before it looks"
TWICE: Final = "Kubernetes reports an empty field once more as malformed or unknown"
ALSO: Final = "Kubernetes reports the same mistake in more words"
OWN: Final = "our own rule; Kubernetes has none"
NEWER: Final = "fields of newer versions have rules that older ones lack"
DIFFERENCES: Final = {
    "pods near no place in particular": TWICE,
    "keys of labels that are matched twice, or not at all": OLDER,
    "pods spread in ways that are wrong all over": OLDER,
    "a container with a restart policy": OLDER,
    "sources of volumes without what they need": TWICE,
    "a variable from a file of no volume": TWICE,
    "a mount of nothing": TWICE,
    "raw devices that are wrong all over": TWICE,
    "files of volumes whose modes, keys and paths are wrong": GATE,
    "priority classes of Kubernetes itself": OWN,
    "probes of an ephemeral container do not matter": ALSO,
    "memory that is misspelt": ALSO,
    "a resource whose name is none": ALSO,
    "resources of the pod that only containers can have": ALSO,
    "a device without a domain, as in the design document": (
        "ours is a warning: some distributions take such names"
    ),
    "every field, even those that a template cannot have": NEWER,
    "a profile of seccomp that leads upwards counts where it is of this machine alone": (
        "Kubernetes prints the whole profile as the value"
    ),
    "a resource without a domain in the overhead of a pod and in a container": (
        "ours is a warning: some distributions take such names"
    ),
    "tolerations without a key, a value or an operator": OLDER,
    "resources of a pod against those of its containers": ALSO,
}


def dry_run(
    control_plane: ControlPlane, plural: str, body: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Post an object as a dry run; return the answer, and the warnings beside it."""
    config = yaml.safe_load(control_plane.kubeconfig.read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    context.load_cert_chain(user["client-certificate"], user["client-key"])
    url = f"{cluster['server']}/api/v1/namespaces/default/{plural}?dryRun=All"
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return json.load(answer), answer.headers.get_all("Warning") or []
    except urllib.error.HTTPError as error:
        return json.load(error), []


@pytest.fixture
def post(control_plane: ControlPlane) -> Post:
    """Return a function that posts an object as a dry run, and returns the answer."""
    return lambda plural, body: dry_run(control_plane, plural, body)[0]


def test_a_real_api_server_says_of_the_pods_what_the_corpus_says(post: Post) -> None:
    surprises: dict[str, Any] = {}
    agreed, differing = 0, set()
    for case in CASES:
        ours = own_causes(case)
        if ours is None:
            continue
        theirs = causes_of(post, case)
        if ours == theirs:
            agreed += 1
        elif case.name.partition(": ")[2] in DIFFERENCES:
            differing.add(case.name.partition(": ")[2])
        else:
            surprises[case.name] = {"only ours": ours - theirs, "only theirs": theirs - ours}
    assert surprises == {}
    assert agreed > 350
    assert DIFFERENCES.keys() - differing == set(), "these agree by now: remove them from the list"


def own_causes(case: Case) -> set[Cause] | None:
    """Return what admission says of the pods of a case, None where that is not about pods."""
    if case.update is not None or template_of(case) is None:
        return None
    found = [one for one in case.judge().refusals if one.error.field.startswith(TEMPLATE)]
    if any(one.rule.id.startswith("T") for one in found):
        return None  # the shape is the CRD's to judge
    return {
        normal(one.error.field.removeprefix(TEMPLATE), one.error.type.value, one.error.body)
        for one in found
        if one.rule.id.partition(".")[0] in OF_KUBERNETES
    }


def template_of(case: Case) -> dict[str, Any] | None:
    """Return the first pod template of a case that has one, with the defaults of its pods."""
    try:
        template = completed(case.after)["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0][
            "template"
        ]
    except (KeyError, IndexError, TypeError):
        return None
    return template if isinstance(template, dict) else None


def causes_of(post: Post, case: Case) -> set[Cause]:
    """Return what the API server says of the pod, or of its template where no Pod gets as far.

    Plugins of admission refuse a Pod before it is validated, for a PriorityClass for example.
    """
    template = template_of(case)
    metadata = template.get("metadata") or {}
    kept = {name: metadata[name] for name in ("labels", "annotations") if name in metadata}
    # A token for a volume needs the account that the plugin ServiceAccount would fill in.
    spec = {"serviceAccountName": "default", **(template.get("spec") or {})}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", **kept}, "spec": spec}
    answer, prefix = post("pods", pod), ""
    if answer.get("reason") == "Forbidden":
        body = {"metadata": kept, "spec": spec}
        made = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "a"}}
        answer, prefix = post("podtemplates", {**made, "template": body}), "template."
    if answer["kind"] != "Status":
        return set()
    if answer["reason"] == "BadRequest":
        return unread(case, answer["message"])
    found = {
        normal(one["field"].removeprefix(prefix), one["reason"], one["message"])
        for one in answer["details"]["causes"]
    }
    # A limit is the request where there is none, and is then reported in both places.
    return {one for one in found if not is_copy(one, found)}


def unread(case: Case, message: str) -> set[Cause]:
    """Compare an amount that the API server cannot read: it names the message and no field."""
    ours = own_causes(case) or set()
    text = message.partition(": ")[2]
    assert any(text in one[2] or "SizeLimit" in one[2] for one in ours), (case.name, message)
    return ours


def is_copy(cause: Cause, found: set[Cause]) -> bool:
    field, reason, text = cause
    return (
        ".requests[" in field and (field.replace(".requests[", ".limits["), reason, text) in found
    )


def normal(field: str, reason: str, message: str) -> Cause:
    """Return a cause without what differs between versions, and in the names of the fields."""
    for pattern, written in FIELDS:
        field = pattern.sub(written, field)
    for pattern, written in TEXTS:
        message = pattern.sub(written, message)
    return field, reason, message
