"""Validation of the lifecycle policies of a vcjob and its tasks.

Volcano's webhook stops at the first error in a list and misses some; these rules report all.
"""

from typing import Final

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.rules import Report, rule

MOST_HOURS: Final = 365 * 24
"""The hours of the longest duration: the sum over thousands of HyperJobs is a date before 9999."""
_HOUR: Final = 3600 * 10**9

MALFORMED: Final = rule("V6.malformed")
TOO_LONG: Final = rule("V6.too-long", most=MOST_HOURS)
NEGATIVE: Final = rule("V6.negative")


def validate_duration(value: str, path: Path, report: Report) -> None:
    """Validate a duration."""
    try:
        length = nanoseconds(value)
    except ValueError:
        report.add(MALFORMED, path, value)
        return
    if length < 0:
        report.add(NEGATIVE, path, value)
    elif length > MOST_HOURS * _HOUR:
        report.add(TOO_LONG, path, value)


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

EVENT_AND_CODE: Final = rule("F4.event-and-code")
NOTHING: Final = rule("F4.nothing")
EVENT: Final = rule("F4.event")
ACTION: Final = rule("F4.action")
ACTION_MISSING: Final = rule("F4.action-missing")
CODE_ACTION: Final = rule("X11.code-action")
CODE_ACTION_MISSING: Final = rule("X11.code-action-missing")
EVENT_TWICE: Final = rule("F4.event-twice")
ANY_AND_MORE: Final = rule("F4.any-and-more")
CODE_ZERO: Final = rule("F4.code-zero")
CODE_TWICE: Final = rule("F4.code-twice")
CODE_RANGE: Final = rule("X11.code-range")
VERSION: Final = rule("X13.policy-version")


Place = tuple[int | str, ...]


def validate_policies(policies: list[Object], path: Path, report: Report) -> None:
    """Check one list of policies."""
    events: dict[str, Place] = {}
    codes: set[int] = set()
    for index, policy in enumerate(policies):
        code = policy.get("exitCode")
        given = _events(policy, index)
        if code is not None and given:
            report.add(EVENT_AND_CODE, path.index(index).child("exitCode"))
        elif code is None and not given:
            report.add(NOTHING, path.index(index))
        for event, place in given.items():
            if event not in EVENTS:
                report.unsupported(EVENT, path.below(place), event, EVENTS)
            elif event in NEW_WORDS:
                report.warn(VERSION, path.below(place), word=event, version=NEW_WORDS[event])
            if event in events:
                report.add(EVENT_TWICE, path.below(place), event)
            events.setdefault(event, place)
        if code is not None:
            _validate_code(code, codes, path.index(index).child("exitCode"), report)
        _validate_action(policy, index, path, report, of_code=not given)
        if policy.get("timeout") is not None:
            validate_duration(policy["timeout"], path.index(index).child("timeout"), report)
    if ANY in events and len(events) > 1:
        report.add(ANY_AND_MORE, path.below(events[ANY]))


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
        report.add(CODE_ZERO, path, code)
    elif not 0 < code <= 255:
        report.warn(CODE_RANGE, path)
    if code in seen:
        report.add(CODE_TWICE, path, code)
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
        report.add(CODE_ACTION_MISSING if of_code else ACTION_MISSING, at)
    elif action not in ACTIONS:
        known = CODE_ACTION if of_code else ACTION
        report.unsupported(known, at, action, ACTIONS)
    else:
        report.warn(VERSION, at, word=action, version=NEW_WORDS[action])
