"""Field numbers of the protobuf messages that clients send for built-in kinds.

One line a message: `number name type`, separated by commas. Types: nothing for text, `int`, `bool`,
`bytes`, another message, `[T]` a list, `{T}` a map from text. `!` keeps a zero value, because the
field is a pointer in the API's types and zero means something there.
"""

_TEXT = """
ObjectMeta: 1 name, 2 generateName, 3 namespace, 4 selfLink, 5 uid, 6 resourceVersion, 7
    generation int, 8 creationTimestamp Time, 9 deletionTimestamp Time, 10
    deletionGracePeriodSeconds int!, 11 labels {}, 12 annotations {}, 13 ownerReferences
    [OwnerReference], 14 finalizers [], 17 managedFields [ManagedFieldsEntry]
OwnerReference: 1 kind, 3 name, 4 uid, 5 apiVersion, 6 controller bool!, 7 blockOwnerDeletion
    bool!
ManagedFieldsEntry: 1 manager, 2 operation, 3 apiVersion, 4 time Time, 6 fieldsType, 7 fieldsV1
    FieldsV1, 8 subresource
DeleteOptions: 1 gracePeriodSeconds int!, 2 preconditions Preconditions, 3 orphanDependents bool!,
    4 propagationPolicy, 5 dryRun []
Preconditions: 1 uid, 2 resourceVersion
LabelSelector: 1 matchLabels {}, 2 matchExpressions [LabelSelectorRequirement]
LabelSelectorRequirement: 1 key, 2 operator, 3 values []
ObjectReference: 1 kind, 2 namespace, 3 name, 4 uid, 5 apiVersion, 6 resourceVersion, 7 fieldPath
LocalObjectReference: 1 name
v1/Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus
NamespaceSpec: 1 finalizers []
NamespaceStatus: 1 phase
v1/Secret: 1 metadata ObjectMeta, 2 data {bytes}, 3 type, 4 stringData {}, 5 immutable bool!
v1/ConfigMap: 1 metadata ObjectMeta, 2 data {}, 3 binaryData {bytes}, 4 immutable bool!
v1/ServiceAccount: 1 metadata ObjectMeta, 2 secrets [ObjectReference], 3 imagePullSecrets
    [LocalObjectReference], 4 automountServiceAccountToken bool!
v1/Event: 1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason, 4 message, 5 source
    EventSource, 6 firstTimestamp Time, 7 lastTimestamp Time, 8 count int, 9 type, 10 eventTime
    MicroTime, 11 series EventSeries, 12 action, 13 related ObjectReference, 14
    reportingComponent, 15 reportingInstance
EventSeries: 1 count int, 2 lastObservedTime MicroTime
EventSource: 1 component, 2 host
v1/Service: 1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status ServiceStatus
ServiceSpec: 1 ports [ServicePort], 2 selector {}, 3 clusterIP, 4 type, 5 externalIPs [], 7
    sessionAffinity, 8 loadBalancerIP, 9 loadBalancerSourceRanges [], 10 externalName, 11
    externalTrafficPolicy, 12 healthCheckNodePort int, 13 publishNotReadyAddresses bool, 17
    ipFamilyPolicy, 18 clusterIPs [], 19 ipFamilies [], 20 allocateLoadBalancerNodePorts bool!, 21
    loadBalancerClass, 22 internalTrafficPolicy, 23 trafficDistribution
ServicePort: 1 name, 2 protocol, 3 port int, 4 targetPort IntOrString, 5 nodePort int, 6
    appProtocol
ServiceStatus: 1 loadBalancer Empty
v1/Pod: 1 metadata ObjectMeta, 2 spec PodSpec, 3 status PodStatus
PodTemplateSpec: 1 metadata ObjectMeta, 2 spec PodSpec
PodSpec: 2 containers [Container], 3 restartPolicy, 4 terminationGracePeriodSeconds int!, 5
    activeDeadlineSeconds int!, 6 dnsPolicy, 7 nodeSelector {}, 8 serviceAccountName, 9
    serviceAccount, 10 nodeName, 11 hostNetwork bool, 12 hostPID bool, 13 hostIPC bool, 14
    securityContext Empty!, 15 imagePullSecrets [LocalObjectReference], 16 hostname, 17 subdomain,
    19 schedulerName, 20 initContainers [Container], 21 automountServiceAccountToken bool!, 24
    priorityClassName, 25 priority int!, 27 shareProcessNamespace bool!, 29 runtimeClassName, 30
    enableServiceLinks bool!, 31 preemptionPolicy
PodStatus: 1 phase, 3 message, 4 reason, 5 hostIP, 6 podIP, 9 qosClass, 11 nominatedNodeName, 14
    resize
Container: 1 name, 2 image, 3 command [], 4 args [], 5 workingDir, 6 ports [ContainerPort], 7 env
    [EnvVar], 8 resources ResourceRequirements, 13 terminationMessagePath, 14 imagePullPolicy, 16
    stdin bool, 17 stdinOnce bool, 18 tty bool, 20 terminationMessagePolicy, 24 restartPolicy
ContainerPort: 1 name, 2 hostPort int, 3 containerPort int, 4 protocol, 5 hostIP
EnvVar: 1 name, 2 value
ResourceRequirements: 1 limits {Quantity}, 2 requests {Quantity}
v1/ResourceQuota: 1 metadata ObjectMeta, 2 spec ResourceQuotaSpec, 3 status Empty
ResourceQuotaSpec: 1 hard {Quantity}, 2 scopes []
coordination.k8s.io/v1/Lease: 1 metadata ObjectMeta, 2 spec LeaseSpec
LeaseSpec: 1 holderIdentity, 2 leaseDurationSeconds int!, 3 acquireTime MicroTime, 4 renewTime
    MicroTime, 5 leaseTransitions int!, 6 strategy, 7 preferredHolder
events.k8s.io/v1/Event: 1 metadata ObjectMeta, 2 eventTime MicroTime, 3 series EventSeries, 4
    reportingController, 5 reportingInstance, 6 action, 7 reason, 8 regarding ObjectReference, 9
    related ObjectReference, 10 note, 11 type, 12 deprecatedSource EventSource, 13
    deprecatedFirstTimestamp Time, 14 deprecatedLastTimestamp Time, 15 deprecatedCount int
authorization.k8s.io/v1/SelfSubjectAccessReview: 1 metadata ObjectMeta, 2 spec AccessReviewSpec, 3
    status AccessReviewStatus
authorization.k8s.io/v1/SubjectAccessReview: 1 metadata ObjectMeta, 2 spec AccessReviewSpec, 3
    status AccessReviewStatus
authorization.k8s.io/v1/LocalSubjectAccessReview: 1 metadata ObjectMeta, 2 spec AccessReviewSpec,
    3 status AccessReviewStatus
AccessReviewSpec: 1 resourceAttributes ResourceAttributes, 2 nonResourceAttributes
    NonResourceAttributes, 3 user, 4 groups [], 6 uid
AccessReviewStatus: 1 allowed bool, 2 reason, 3 evaluationError, 4 denied bool
ResourceAttributes: 1 namespace, 2 verb, 3 group, 4 version, 5 resource, 6 subresource, 7 name
NonResourceAttributes: 1 path, 2 verb
authorization.k8s.io/v1/SelfSubjectRulesReview: 1 metadata ObjectMeta, 2 spec RulesReviewSpec, 3
    status RulesReviewStatus
RulesReviewSpec: 1 namespace
RulesReviewStatus: 3 incomplete bool, 4 evaluationError
authentication.k8s.io/v1/SelfSubjectReview: 1 metadata ObjectMeta, 2 status
    SelfSubjectReviewStatus
SelfSubjectReviewStatus: 1 userInfo Empty
authentication.k8s.io/v1/TokenRequest: 1 metadata ObjectMeta, 2 spec TokenRequestSpec, 3 status
    TokenRequestStatus
TokenRequestSpec: 1 audiences [], 3 boundObjectRef BoundObjectReference, 4 expirationSeconds int!
TokenRequestStatus: 1 token, 2 expirationTimestamp Time
BoundObjectReference: 1 kind, 2 apiVersion, 3 name, 4 uid
policy/v1/PodDisruptionBudget: 1 metadata ObjectMeta, 2 spec PodDisruptionBudgetSpec, 3 status
    PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: 1 minAvailable IntOrString, 2 selector LabelSelector!, 3 maxUnavailable
    IntOrString, 4 unhealthyPodEvictionPolicy
PodDisruptionBudgetStatus: 1 observedGeneration int, 3 disruptionsAllowed int, 4 currentHealthy
    int, 5 desiredHealthy int, 6 expectedPods int
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
apps/v1/Deployment: 1 metadata ObjectMeta, 2 spec DeploymentSpec, 3 status DeploymentStatus
DeploymentSpec: 1 replicas int!, 2 selector LabelSelector!, 3 template PodTemplateSpec, 4 strategy
    DeploymentStrategy, 5 minReadySeconds int, 6 revisionHistoryLimit int!, 7 paused bool, 9
    progressDeadlineSeconds int!
DeploymentStrategy: 1 type, 2 rollingUpdate RollingUpdateDeployment
RollingUpdateDeployment: 1 maxUnavailable IntOrString, 2 maxSurge IntOrString
DeploymentStatus: 1 observedGeneration int, 2 replicas int, 3 updatedReplicas int, 4
    availableReplicas int, 5 unavailableReplicas int, 7 readyReplicas int
batch/v1/Job: 1 metadata ObjectMeta, 2 spec JobSpec, 3 status JobStatus
JobSpec: 1 parallelism int!, 2 completions int!, 3 activeDeadlineSeconds int!, 4 selector
    LabelSelector!, 5 manualSelector bool!, 6 template PodTemplateSpec, 7 backoffLimit int!, 8
    ttlSecondsAfterFinished int!, 9 completionMode, 10 suspend bool!
JobStatus: 4 active int, 5 succeeded int, 6 failed int
autoscaling/v1/Scale: 1 metadata ObjectMeta, 2 spec ScaleSpec, 3 status ScaleStatus
ScaleSpec: 1 replicas int
ScaleStatus: 1 replicas int, 2 selector
Empty:
"""

Fields = dict[int, tuple[str, str]]


def _parse(text: str) -> dict[str, Fields]:
    messages: dict[str, Fields] = {}
    for line in text.strip().replace("\n    ", " ").splitlines():
        name, _, rest = line.partition(":")
        fields: Fields = {}
        for part in filter(None, (piece.strip() for piece in rest.split(","))):
            number, field, *kind = part.split()
            fields[int(number)] = (field, kind[0] if kind else "")
        messages[name] = fields
    return messages


MESSAGES = _parse(_TEXT)
"""Fields by number, for every message: a kind is found as `group/version/Kind`."""
