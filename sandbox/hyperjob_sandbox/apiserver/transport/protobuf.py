"""Kubernetes protobuf bodies to objects, for the built-in kinds that kubectl makes in that form.

Nothing is lost in silence: a message or field that is not known here refuses the body (415), so the
client can be told to send JSON.
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.jsonvalue import Json

# One line a message: `number name type`, separated by commas. Types: nothing for text, `int`,
# `bool`, `bytes`, another message, `[T]` a list, `{T}` a map from text. `!` keeps a zero value,
# because the field is a pointer in the API's types and zero means something there.
_TEXT = """
ObjectMeta: 1 name, 2 generateName, 3 namespace, 5 uid, 6 resourceVersion, 7 generation int,
    8 creationTimestamp Time, 11 labels {}, 12 annotations {}, 14 finalizers []
DeleteOptions: 1 gracePeriodSeconds int!, 2 preconditions Preconditions, 3 orphanDependents bool!,
    4 propagationPolicy, 5 dryRun []
Preconditions: 1 uid, 2 resourceVersion
LabelSelector: 1 matchLabels {}, 2 matchExpressions [LabelSelectorRequirement]
LabelSelectorRequirement: 1 key, 2 operator, 3 values []
v1/Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status Empty
NamespaceSpec: 1 finalizers []
v1/Secret: 1 metadata ObjectMeta, 2 data {bytes}, 3 type, 4 stringData {}, 5 immutable bool!
v1/ConfigMap: 1 metadata ObjectMeta, 2 data {}, 3 binaryData {bytes}, 4 immutable bool!
v1/ServiceAccount: 1 metadata ObjectMeta, 4 automountServiceAccountToken bool!
v1/ResourceQuota: 1 metadata ObjectMeta, 2 spec ResourceQuotaSpec, 3 status Empty
ResourceQuotaSpec: 1 hard {Quantity}, 2 scopes []
apps/v1/Deployment: 1 metadata ObjectMeta, 2 spec DeploymentSpec, 3 status Empty
DeploymentSpec: 1 replicas int!, 2 selector LabelSelector!, 3 template PodTemplateSpec, 4 strategy
    Empty, 5 minReadySeconds int, 6 revisionHistoryLimit int!, 7 paused bool, 9
    progressDeadlineSeconds int!
PodTemplateSpec: 1 metadata ObjectMeta, 2 spec PodSpec
PodSpec: 2 containers [Container], 3 restartPolicy, 4 terminationGracePeriodSeconds int!, 6
    dnsPolicy, 7 nodeSelector {}, 8 serviceAccountName, 9 serviceAccount, 10 nodeName, 14
    securityContext Empty!, 19 schedulerName
Container: 1 name, 2 image, 3 command [], 4 args [], 5 workingDir, 6 ports [ContainerPort], 7 env
    [EnvVar], 8 resources ResourceRequirements, 13 terminationMessagePath, 14 imagePullPolicy, 20
    terminationMessagePolicy
ContainerPort: 1 name, 3 containerPort int, 4 protocol
EnvVar: 1 name, 2 value
ResourceRequirements: 1 limits {Quantity}, 2 requests {Quantity}
policy/v1/PodDisruptionBudget: 1 metadata ObjectMeta, 2 spec PodDisruptionBudgetSpec, 3 status
    PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: 1 minAvailable IntOrString, 2 selector LabelSelector!, 3 maxUnavailable
    IntOrString
PodDisruptionBudgetStatus: 3 disruptionsAllowed int, 4 currentHealthy int, 5 desiredHealthy int, 6
    expectedPods int
PolicyRule: 1 verbs [], 2 apiGroups [], 3 resources [], 4 resourceNames [], 5 nonResourceURLs []
RoleRef: 1 apiGroup, 2 kind, 3 name
Subject: 1 kind, 2 apiGroup, 3 name, 4 namespace
rbac.authorization.k8s.io/v1/Role: 1 metadata ObjectMeta, 2 rules [PolicyRule]
rbac.authorization.k8s.io/v1/RoleBinding: 1 metadata ObjectMeta, 2 subjects [Subject], 3 roleRef
    RoleRef
rbac.authorization.k8s.io/v1/ClusterRole: 1 metadata ObjectMeta, 2 rules [PolicyRule], 3
    aggregationRule AggregationRule
rbac.authorization.k8s.io/v1/ClusterRoleBinding: 1 metadata ObjectMeta, 2 subjects [Subject], 3
    roleRef RoleRef
AggregationRule: 1 clusterRoleSelectors [LabelSelector]
scheduling.k8s.io/v1/PriorityClass: 1 metadata ObjectMeta, 2 value int!, 3 globalDefault bool, 4
    description, 5 preemptionPolicy
authorization.k8s.io/v1/SelfSubjectAccessReview: 1 metadata ObjectMeta, 2 spec AccessReviewSpec, 3
    status AccessReviewStatus
AccessReviewSpec: 1 resourceAttributes ResourceAttributes, 2 nonResourceAttributes
    NonResourceAttributes
AccessReviewStatus: 1 allowed bool
ResourceAttributes: 1 namespace, 2 verb, 3 group, 4 version, 5 resource, 6 subresource, 7 name
NonResourceAttributes: 1 path, 2 verb
authorization.k8s.io/v1/SelfSubjectRulesReview: 1 metadata ObjectMeta, 2 spec RulesReviewSpec, 3
    status RulesReviewStatus
RulesReviewSpec: 1 namespace
RulesReviewStatus: 3 incomplete bool
authentication.k8s.io/v1/SelfSubjectReview: 1 metadata ObjectMeta, 2 status ReviewStatus
ReviewStatus: 1 userInfo Empty
authentication.k8s.io/v1/TokenRequest: 1 metadata ObjectMeta, 2 spec TokenRequestSpec, 3 status
    TokenRequestStatus
TokenRequestSpec: 1 audiences [], 4 expirationSeconds int!
TokenRequestStatus: 2 expirationTimestamp Time
Empty:
"""
_MAGIC = b"k8s\x00"
_INT64 = 1 << 63


def _parse(text: str) -> dict[str, dict[int, tuple[str, str]]]:
    messages: dict[str, dict[int, tuple[str, str]]] = {}
    for line in text.strip().replace("\n    ", " ").splitlines():
        name, _, rest = line.partition(":")
        messages[name] = {}
        for part in filter(None, (piece.strip() for piece in rest.split(","))):
            number, field, *kind = part.split()
            messages[name][int(number)] = (field, kind[0] if kind else "")
    return messages


MESSAGES = _parse(_TEXT)
"""Fields by number, for every message: a kind is found as `group/version/Kind`."""


def decode(body: bytes) -> Object:
    """Decode an enveloped object; raise ApiError 400 or 415."""
    if not body.startswith(_MAGIC):
        raise errors.bad_request("the protobuf body has no Kubernetes envelope")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        names = dict(_fields(envelope[1]))
        version, kind = names[1].decode(), names[2].decode()
        message = "DeleteOptions" if kind == "DeleteOptions" else f"{version}/{kind}"
        if message not in MESSAGES:
            raise _unknown()
        decoded = _message(envelope.get(2, b""), message)
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise errors.bad_request(f"the protobuf body cannot be decoded: {error}") from None
    return {"kind": kind, "apiVersion": version, **decoded}


def _unknown() -> errors.ApiError:
    return errors.unsupported_media_type(("application/json", "application/yaml"))


def _message(data: bytes, name: str) -> Object:
    known = MESSAGES[name]
    result: Object = {}
    for number, value in _fields(data):
        if number not in known:
            if value in (0, b""):
                continue  # an unset field that the encoder writes anyway
            raise _unknown()
        field, kind = known[number]
        if kind.startswith("["):
            result.setdefault(field, []).append(_value(value, kind[1:-1]))
        elif kind.startswith("{"):
            entry = dict(_fields(value))
            key = entry.get(1, b"").decode()
            result.setdefault(field, {})[key] = _value(entry.get(2, b""), kind[1:-1])
        else:
            decoded = _value(value, kind.removesuffix("!"))
            if kind.endswith("!") or decoded not in (None, "", 0, False, {}):
                result[field] = decoded
    return result


def _value(value: Json, kind: str) -> Json:
    match kind:
        case "int":
            return value - (1 << 64) if value >= _INT64 else value
        case "bool":
            return bool(value)
        case "":
            return value.decode()
        case "bytes":
            return base64.b64encode(value).decode()
        case "Time":
            seconds = dict(_fields(value)).get(1)
            moment = datetime.fromtimestamp(seconds, UTC) if seconds else None
            return moment and moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        case "Quantity":
            return dict(_fields(value)).get(1, b"").decode()
        case "IntOrString":
            parts = dict(_fields(value))
            return parts[3].decode() if parts.get(1) else _value(parts.get(2, 0), "int")
        case _:
            return _message(value, kind)


def _fields(data: bytes) -> Iterator[tuple[int, Json]]:
    """Yield the fields of a message as they come: varints as numbers, the rest as bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise ValueError("truncated")
            yield number, data[position : position + length]
            position += length
        else:
            raise ValueError(f"wire type {wire}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        result |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return result, position
