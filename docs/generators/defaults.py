"""The list of defaults, for docs/messages.md."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Default:
    """One default: the field, its value, and when it is set."""

    id: str
    field: str
    value: str
    when: str


_JOB: Final = "spec.replicatedJobs[].templateSpec"
_TASK: Final = f"{_JOB}.tasks[]"
_BOX: Final = f"{_TASK}.template.spec.containers[]"

DEFAULTS: Final = (
    Default("M1", f"{_JOB}.queue", "`default`", "absent or empty"),
    Default("M2", f"{_JOB}.schedulerName", "`volcano`", "absent or empty"),
    Default("M3", f"{_JOB}.maxRetry", "3", "absent or 0, which Volcano reads as absent"),
    Default("M4", f"{_TASK}.name", "`default` and the number of the task", "absent or empty"),
    Default(
        "M5",
        f"{_TASK}.template.spec.dnsPolicy",
        "`ClusterFirstWithHostNet`",
        "absent, and the pods are in the host's network",
    ),
    Default(
        "M6",
        f"{_TASK}.minAvailable",
        "`minPartitions` * `partitionSize`, else `replicas`",
        "absent",
    ),
    Default("M7", f"{_TASK}.maxRetry", "3", "absent or 0"),
    Default("M8", f"{_JOB}.minAvailable", "the sum of the tasks' `minAvailable`", "absent or 0"),
    Default("M9", f"{_JOB}.plugins.svc", "no arguments", "mpi, pytorch, ray or tensorflow is used"),
    Default("M10", f"{_JOB}.plugins.ssh", "no arguments", "mpi is used"),
    Default(
        "V8",
        f"{_BOX}.resources.limits",
        "the request",
        "a device or huge pages are requested without a limit; init containers too",
    ),
    Default(
        "V8",
        f"{_BOX}.terminationMessagePolicy",
        "`FallbackToLogsOnError`",
        "absent; init containers too",
    ),
    Default("V3", f"{_JOB}.networkTopology.mode", "`hard`", "absent; partitions too"),
    Default("V10", f"{_TASK}.partitionPolicy.minPartitions", "0", "absent"),
    Default("X6", "spec.replicatedJobs[].replicas", "1", "absent"),
    Default("X8", "spec.replicatedJobs[].clusterPolicy", "`Preferred`", "absent"),
    Default("L1", "spec.successPolicy.operator", "`All`", "absent"),
    Default("L19", "spec.checkpoint.path", "`/checkpoints`", "absent, and a claim is named"),
    Default("L19", "spec.checkpoint.gracePeriodSeconds", "30", "absent"),
)
