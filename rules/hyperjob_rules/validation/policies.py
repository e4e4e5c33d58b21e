"""Validation of the lifecycle policies of a vcjob and its tasks.

Volcano's webhook stops at the first error in a list and misses some; these rules report all.
"""

from typing import Final

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    WARNING,
    Report,
    rule,
)

MOST_HOURS: Final = 365 * 24
"""The hours of the longest duration: the sum over thousands of HyperJobs is a date before 9999."""
_HOUR: Final = 3600 * 10**9

MALFORMED = rule(
    "V6.malformed",
    INVALID,
    "must be a duration, such as 30s, 10m or 1h30m",
    "a length of time is no duration as Go writes it",
    "write a number and a unit: ns, us, ms, s, m or h",
)
TOO_LONG = rule(
    "V6.too-long",
    INVALID,
    f"must be at most {MOST_HOURS}h, a year",
    "a length of time is longer than any training, and sums of such times leave the calendar",
    "use a shorter one, or leave it out",
)
NEGATIVE = rule(
    "V6.negative",
    INVALID,
    "must not be negative",
    "a length of time is negative",
    "use a positive one",
)


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

EVENT_AND_CODE = rule(
    "F4.event-and-code",
    FORBIDDEN,
    "may not be set together with `event` or `events`",
    "a policy has both an event and an exit code",
    "write two policies",
)
NOTHING = rule(
    "F4.nothing",
    REQUIRED,
    "one of `event`, `events` or `exitCode` must be set",
    "a policy has no event and no exit code",
    "add an event or an exit code",
)
EVENT = rule(
    "F4.event",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a policy has an event that Volcano does not know, or reserves",
    "use one of the values listed",
)
ACTION = rule(
    "F4.action",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a policy has an action that Volcano does not know, or reserves",
    "use one of the values listed",
)
ACTION_MISSING = rule(
    "F4.action-missing", REQUIRED, "", "a policy has no action", "add an action, such as RestartJob"
)
CODE_ACTION = rule(
    "X11.code-action",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a policy for an exit code has an action that Volcano does not know, and does not check",
    "use one of the values listed",
)
CODE_ACTION_MISSING = rule(
    "X11.code-action-missing",
    REQUIRED,
    "",
    "a policy for an exit code has no action",
    "add an action, such as RestartJob",
)
EVENT_TWICE = rule(
    "F4.event-twice",
    DUPLICATE,
    "",
    "two policies of a list have the same event",
    "keep one of them",
)
ANY_AND_MORE = rule(
    "F4.any-and-more",
    FORBIDDEN,
    "may not be set together with other events: `*` matches all events",
    "one policy of a list matches every event, and another policy some events",
    "remove one of the two",
)
CODE_ZERO = rule(
    "F4.code-zero",
    INVALID,
    "must not be 0, which is success",
    "a policy for failures has the exit code of success",
    "use the exit code of a failure, or the event TaskCompleted",
)
CODE_TWICE = rule(
    "F4.code-twice",
    DUPLICATE,
    "",
    "two policies of a list have the same exit code",
    "keep one of them",
)
CODE_RANGE = rule(
    "X11.code-range",
    WARNING,
    "can never match: containers on Linux exit with a code from 0 to 255",
    "a policy has an exit code that no container can have",
    "use a code from 1 to 255; an end by signal N has 128+N",
)
VERSION = rule(
    "X13.policy-version",
    WARNING,
    "{word} needs Volcano {version} in the member clusters; older ones refuse the sub-job",
    "a policy uses an event or action that older versions of Volcano do not know",
    "make sure that all member clusters have that version",
)


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
