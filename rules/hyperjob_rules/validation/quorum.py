"""Validation of spec.quorum: how many sub-jobs must train, and which plugins need all of them."""

from hyperjob_core.api.field import SPEC
from hyperjob_core.api.meta import Object
from hyperjob_core.api.plugins import PLUGINS, lighthouse_of
from hyperjob_rules.validation.rules import FORBIDDEN, INVALID, WARNING, Report, rule
from hyperjob_rules.validation.split import sub_jobs
from hyperjob_rules.validation.templates import task_names, tasks_of

TOO_MANY = rule(
    "L20.too-many",
    INVALID,
    "must be between 1 and the number of sub-jobs ({count})",
    "more sub-jobs must train than there are, so the training never starts",
    "lower quorum, or raise the replicas of a replicatedJob",
)
ONE_WORLD = rule(
    "L20.one-world",
    FORBIDDEN,
    "may not be used together with quorum: it makes one world of all sub-jobs, which ends with the"
    " first sub-job that is lost; use plugin torchft",
    "a HyperJob has a quorum, and a plugin that needs all sub-jobs",
    "remove quorum, or use plugin torchft",
)
NEVER_MET = rule(
    "L20.never-met",
    WARNING,
    "is more than minAvailable ({available}): the sub-jobs that start together are too few to"
    " train",
    "minAvailable lets fewer sub-jobs start than the training needs",
    "raise minAvailable to quorum, or lower quorum",
)
RESTARTS_ALL = rule(
    "L20.restarts-all",
    WARNING,
    "also restarts the sub-jobs that train on; without the rule the controller recreates only the"
    " failed sub-job",
    "a HyperJob has a quorum, and a rule of its failurePolicy restarts all sub-jobs",
    "use RestartJob, or remove the rule",
)
NO_QUORUM = rule(
    "L20.no-quorum",
    WARNING,
    "quorum is unset: the loss of one sub-job restarts all of them, or none",
    "a HyperJob has plugin torchft, whose sub-jobs train on without the others, and no quorum",
    "set spec.quorum to the fewest sub-jobs that must train",
)


def validate_quorum(spec: Object, report: Report) -> None:
    """Validate spec.quorum, also against plugins, minAvailable and the failure policy."""
    quorum, plugins = spec.get("quorum"), spec.get("plugins") or {}
    if quorum is None:
        if "torchft" in plugins:
            report.warn(NO_QUORUM, SPEC.child("plugins").key("torchft"))
        return
    path = SPEC.child("quorum")
    task = lighthouse_of(plugins)
    jobs = [job for job in spec.get("replicatedJobs") or () if not _is_only(job, task)]
    counts = [sub_jobs(job) for job in jobs]
    total = sum(count or 0 for count in counts)
    if None not in counts and quorum > total:
        report.add(TOO_MANY, path, quorum, count=total)
    available = spec.get("minAvailable")
    if available is not None and quorum > available:
        report.warn(NEVER_MET, path, available=available)
    for name in sorted(plugins):
        if name in PLUGINS and PLUGINS[name].one_world:
            report.add(ONE_WORLD, SPEC.child("plugins").key(name))
    rules = (spec.get("failurePolicy") or {}).get("rules") or ()
    for index, each in enumerate(rules):
        if str(each.get("action") or "").startswith("RestartHyperJob"):
            at = SPEC.child("failurePolicy", "rules").index(index).child("action")
            report.warn(RESTARTS_ALL, at)


def _is_only(job: Object, task: str) -> bool:
    """Return whether a replicatedJob runs the lighthouse and nothing else."""
    return bool(task) and set(task_names(tasks_of(job))) <= {task}
