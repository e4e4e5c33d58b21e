"""The page of messages in the docs, made from the rules themselves.

`python -m webhook.messages docs/messages.md` writes it; a test keeps it current.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import webhook.validation  # noqa: F401 - declares all rules
from hyperjob.api.field import FieldError
from hyperjob.markdown import row, table
from webhook.defaulting.catalogue import DEFAULTS
from webhook.validation.rules import Rule, declared

INTRO: Final = """\
# Messages

What admission says of a HyperJob, why, and what to do about it. This page is made from the rules
(`python -m webhook.messages docs/messages.md`); do not edit it.

An error names the field, then says what is wrong with it:

```
$ kubectl apply -f job.yaml
Error from server (Invalid): error when creating "job.yaml": admission webhook
"vhyperjob.training.volcano.sh" denied the request: HyperJob.training.volcano.sh "llm" is invalid:
spec.replicatedJobs[0].templateSpec.tasks[0].minAvailable: Invalid value: 8: must be less than or
equal to `replicas` (4) (remedy: lower minAvailable, raise replicas, or leave minAvailable out for
all pods)
```

All errors come at once. Warnings do not keep a HyperJob from being stored. `hyperjob lint FILE`
gives the same messages without a cluster, each with its line and the id of its rule. The denial and
`hyperjob lint` print the remedy of the rule as well. An id never changes and is never used again.

In the tables `…` is the value of the field, and words in braces for what varies.
"""

CHAPTERS: Final = {
    "T": (
        "The shape of the document",
        "The API server checks these before any webhook; `hyperjob lint` checks them offline.",
    ),
    "V": (
        "What Volcano and Kubernetes refuse",
        "Sub-jobs and pods would be refused later, here or in a member.",
    ),
    "V8": (
        "What Kubernetes refuses in a pod template",
        "The id names the type of the API and the field.",
    ),
    "F": ("Policies and disruption budgets", "Volcano's own rules, with every mistake named."),
    "X": (
        "What no other component checks",
        "These would be accepted everywhere and fail while the job runs.",
    ),
    "L": (
        "Failure, success, order and plugins of a HyperJob",
        "The HyperJob's own policies.",
    ),
}


def render() -> str:
    """Return the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield INTRO
    yield "## What is filled in"
    yield ""
    yield "The mutating webhook adds these, as Volcano's would for a job of its own; it never"
    yield "replaces a value."
    yield ""
    yield from table("Rule", "Field", "Value", "When")
    for known in DEFAULTS:
        yield row(known.id, f"`{known.field}`", known.value, known.when)
    chapters: dict[str, list[Rule]] = {chapter: [] for chapter in CHAPTERS}
    for rule in declared():
        first = rule.id.partition(".")[0]
        chapters[first if first in CHAPTERS else first[0]].append(rule)
    for chapter, (title, text) in CHAPTERS.items():
        yield f"\n## {title}\n"
        yield f"{text}\n"
        yield from table("Rule", "Message", "Cause", "Remedy")
        for rule in chapters[chapter]:
            yield row(rule.id, f"`{message(rule)}`", rule.cause, rule.remedy)
    yield ""


def message(rule: Rule) -> str:
    """Return the form of a rule's message, as a person sees it after the field's path."""
    if rule.kind is None:
        return f"warning: {rule.form}"
    body = FieldError(rule.kind, "", "…", rule.form).body
    return body.replace('"…"', "…").replace("`", "'")


def main() -> None:
    """Write the page to the file named."""
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
