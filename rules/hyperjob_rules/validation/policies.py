"""Validation of the lifecycle policies of a vcjob and its tasks.

Volcano's webhook stops at the first error in a list and misses some; these rules report all.
"""

from typing import Final

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.rules import Report, bounded

MOST_HOURS: Final = 365 * 24
"""The hours of the longest duration: the sum over thousands of HyperJobs is a date before 9999."""
_HOUR: Final = 3600 * 10**9

bounded("V6.too-long", most=MOST_HOURS)


def validate_duration(value: str, path: Path, report: Report) -> None:
    """Validate a duration."""
    try:
        length = nanoseconds(value)
    except ValueError:
        report.add("V6.malformed", path, value)
        return
    if length < 0:
        report.add("V6.negative", path, value)
    elif length > MOST_HOURS * _HOUR:
        report.add("V6.too-long", path, value)


ANY: Final = "*"
EVENTS: Final = (
    ANY,
    "JobUpdated",
    "PodEvicted",
    "PodFailed",
    "PodPending",
    "TaskCompleted",
    "TaskFailed",
    "Unknown",
)
ACTIONS: Final = (
    "AbortJob",
    "CompleteJob",
    "RestartJob",
    "RestartPartition",
    "RestartPod",
    "RestartTask",
    "ResumeJob",
    "TerminateJob",
)
NEW_WORDS: Final = {"PodPending": "1.12", "RestartPod": "1.12", "RestartPartition": "1.14"}


Place = tuple[int | str, ...]


def validate_policies(policies: list[Object], path: Path, report: Report) -> None:
    """Check one list of policies."""
    events: dict[str, Place] = {}
    codes: set[int] = set()
    for index, policy in enumerate(policies):
        code = policy.get("exitCode")
        given = _events(policy, index)
        if code is not None and given:
            report.add("F4.event-and-code", path.index(index).child("exitCode"))
        elif code is None and not given:
            report.add("F4.nothing", path.index(index))
        for event, place in given.items():
            if event not in EVENTS:
                report.unsupported("F4.event", path.below(place), event, EVENTS)
            elif event in NEW_WORDS:
                report.warn(
                    "X13.policy-version", path.below(place), word=event, version=NEW_WORDS[event]
                )
            if event in events:
                report.add("F4.event-twice", path.below(place), event)
            events.setdefault(event, place)
        if code is not None:
            _validate_code(code, codes, path.index(index).child("exitCode"), report)
        _validate_action(policy, index, path, report, of_code=not given)
        if policy.get("timeout") is not None:
            validate_duration(policy["timeout"], path.index(index).child("timeout"), report)
    if ANY in events and len(events) > 1:
        report.add("F4.any-and-more", path.below(events[ANY]))


def _events(policy: Object, number: int) -> dict[str, Place]:
    """Return the events of a policy, each with the first place where it is named."""
    found: dict[str, Place] = {}
    if policy.get("event"):
        found[policy["event"]] = (number, "event")
    for index, event in enumerate(policy.get("events") or ()):
        found.setdefault(event, (number, "events", index))
    return found


def _validate_code(code: int, seen: set[int], path: Path, report: Report) -> None:
    if code == 0:
        report.add("F4.code-zero", path, code)
    elif not 0 < code <= 255:
        report.warn("X11.code-range", path)
    if code in seen:
        report.add("F4.code-twice", path, code)
    seen.add(code)


def _validate_action(
    policy: Object, index: int, path: Path, report: Report, *, of_code: bool
) -> None:
    """Check the action of a policy; `of_code`: Volcano does not check that of an exit code."""
    action = policy.get("action")
    if action in ACTIONS and action not in NEW_WORDS:
        return
    at = path.index(index).child("action")
    if not action:
        report.add("X11.code-action-missing" if of_code else "F4.action-missing", at)
    elif action not in ACTIONS:
        known = "X11.code-action" if of_code else "F4.action"
        report.unsupported(known, at, action, ACTIONS)
    else:
        report.warn("X13.policy-version", at, word=action, version=NEW_WORDS[action])
