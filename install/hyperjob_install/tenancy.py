"""Admission policies for the queues, PriorityClasses and clusters that a HyperJob names.

The API server evaluates them (ValidatingAdmissionPolicy, Kubernetes 1.30 and newer): a user needs
the verb `use` on the named objects. One authorization check costs 350,000 of the 10,000,000 units
that a policy may spend (k8s.io/apiserver/pkg/cel/library). Therefore each kind has its own policy,
which checks the first `NAMES` different names.
"""

from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CLUSTER_ROLES,
    CLUSTERS,
    HYPERJOBS,
    PRIORITY_CLASSES,
    QUEUES,
    Resource,
)
from hyperjob_install.objects import Component, Item, new_item

NAMES: Final = 16
"""Maximum number of different names of a kind in a HyperJob, unless its user may use all."""

USE: Final = "use"
USE_ALL: Final = "hyperjob-use-all"

_USER: Final = "'User \"' + request.userInfo.username + '\"'"
_JOBS: Final = "object.spec.replicatedJobs"
_QUEUES: Final = (
    f"{_JOBS}.map(j, has(j.templateSpec.queue) && j.templateSpec.queue != ''"
    " ? j.templateSpec.queue : 'default')"
)
_TASK_CLASSES: Final = (
    "j.templateSpec.tasks.map(t, has(t.template) && has(t.template.spec)"
    " && has(t.template.spec.priorityClassName) ? t.template.spec.priorityClassName : '').join(',')"
)
_CLASSES: Final = (
    f"{_JOBS}.map(j, (has(j.templateSpec.priorityClassName)"
    " ? j.templateSpec.priorityClassName : '') + ',' + (has(j.templateSpec.tasks)"
    f" ? {_TASK_CLASSES} : '')).join(',').split(',').filter(n, n != '')"
)
_CLUSTERS: Final = (
    f"{_JOBS}.map(j, (has(j.clusterNames) ? j.clusterNames.join(',') : '') + ','"
    " + (has(j.alternatives) ? j.alternatives.map(a, has(a.clusterNames)"
    " ? a.clusterNames.join(',') : '').join(',') : ''))"
    ".join(',').split(',').filter(n, n != '')"
)
_BOUND_TO_CLUSTERS: Final = (
    f"{_JOBS}.all(j, has(j.clusterPolicy) && j.clusterPolicy == 'Required'"
    " && has(j.clusterNames) && size(j.clusterNames) > 0)"
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind whose objects a HyperJob names: `names` is the CEL list of the names."""

    resource: Resource
    names: str
    more: tuple[Object, ...] = ()

    @property
    def policy(self) -> str:
        return f"hyperjob-tenancy-{self.resource.plural}"


_KINDS: Final = (
    _Kind(QUEUES, _QUEUES),
    _Kind(
        PRIORITY_CLASSES,
        _CLASSES,
        (
            {
                "expression": "variables.left0.all(n, !n.startsWith('system-'))",
                "message": "PriorityClasses system-* are for the cluster's own pods",
                "reason": "Forbidden",
            },
        ),
    ),
    _Kind(
        CLUSTERS,
        _CLUSTERS,
        (
            {
                "expression": f"variables.all || {_BOUND_TO_CLUSTERS}",
                "messageExpression": (
                    f"{_USER} + ' cannot use every cluster: give each replicatedJob"
                    " clusterNames and clusterPolicy: Required'"
                ),
                "reason": "Forbidden",
            },
        ),
    ),
)

POLICIES: Final = tuple(kind.policy for kind in _KINDS)


def tenancy(*, enabled: bool) -> list[Item]:
    """Return the policies, their bindings and a role that may use all objects.

    Without `enabled` the items are marked for deletion.
    """
    objects: list[tuple[Resource, str, Object]] = []
    for kind in _KINDS:
        binding = {"policyName": kind.policy, "validationActions": ["Deny"]}
        objects.append((ADMISSION_POLICIES, kind.policy, {"spec": policy_spec(kind)}))
        objects.append((ADMISSION_POLICY_BINDINGS, kind.policy, {"spec": binding}))
    used = [kind.resource for kind in _KINDS]
    rules = [
        {"apiGroups": [each.group], "resources": [each.plural], "verbs": [USE]} for each in used
    ]
    objects.append((CLUSTER_ROLES, USE_ALL, {"rules": rules}))
    return [
        new_item(*each, part=Component.TENANCY, component="tenancy", absent=not enabled)
        for each in objects
    ]


def policy_spec(kind: _Kind) -> Object:
    """Return a policy: `one0`, `one1`… are the different names, `left1`… the names after each."""
    resource = kind.resource
    of_kind = f"authorizer.group('{resource.group}').resource('{resource.plural}')"
    variables = [
        {"name": "all", "expression": f"{of_kind}.check('{USE}').allowed()"},
        {"name": "left0", "expression": kind.names},
    ]
    validations = [
        *kind.more,
        {
            "expression": f"variables.all || size(variables.left{NAMES}) == 0",
            "message": f"names more than {NAMES} different {resource.plural}",
            "reason": "Forbidden",
        },
    ]
    for n in range(NAMES):
        variables += [
            {
                "name": f"one{n}",
                "expression": f"size(variables.left{n}) > 0 ? variables.left{n}[0] : ''",
            },
            {
                "name": f"left{n + 1}",
                "expression": f"variables.left{n}.filter(n, n != variables.one{n})",
            },
        ]
        validations.append(_may_use(resource, of_kind, f"variables.one{n}"))
    rule = {
        "apiGroups": [HYPERJOBS.group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [HYPERJOBS.plural],
    }
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {
                "name": "spec-changes",
                "expression": "request.operation == 'CREATE' || object.spec != oldObject.spec",
            }
        ],
        "variables": variables,
        "validations": validations,
    }


def _may_use(resource: Resource, of_kind: str, name: str) -> Object:
    """Return the validation that the user may use the object of a CEL name, in Kubernetes' words.

    `of_kind` is the CEL authorizer of the kind; an empty name passes.
    """
    return {
        "expression": (
            f"variables.all || {name} == '' || {of_kind}.name({name}).check('{USE}').allowed()"
        ),
        "messageExpression": (
            f"'{resource.group_resource} \"' + {name} + '\" is forbidden: '"
            f' + {_USER} + \' cannot {USE} resource "{resource.plural}" in API group'
            f' "{resource.group}" at the cluster scope\''
        ),
        "reason": "Forbidden",
    }
