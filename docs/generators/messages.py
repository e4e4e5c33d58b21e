"""The generator of docs/messages.md, from the rules of the webhook.

`python -m docs.generators.messages docs/messages.md` writes the page; a test compares it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import hyperjob_rules.validation.update  # noqa: F401 - declares all rules
from docs.generators.defaults import DEFAULTS
from docs.generators.markdown import row, table
from hyperjob_core.api.field import FieldError
from hyperjob_rules.validation.rules import Rule, declared

INTRO: Final = """\
# Messages

The messages of the webhook about a HyperJob, their causes and their remedies. This page is
generated from the rules (`python -m docs.generators.messages docs/messages.md`); do not edit it.

An error names the field, then says what is wrong with it:

```
$ kubectl apply -f job.yaml
Error from server (Invalid): error when creating "job.yaml": admission webhook
"vhyperjob.training.volcano.sh" denied the request: HyperJob.training.volcano.sh "llm" is invalid:
spec.replicatedJobs[0].templateSpec.tasks[0].minAvailable: Invalid value: 8: must be less than or
equal to `replicas` (4) (remedy: lower minAvailable, raise the replicas, or leave minAvailable out:
all pods count then)
```

A denial lists all errors of the HyperJob. A HyperJob with only warnings is stored. `hyperjob lint
FILE` prints the same messages without a cluster, each with its line and the id of its rule. Both
the denial and `hyperjob lint` print the remedy of the rule. An id never changes and is never used
again.

In the tables `…` is the value of the field, and a word in braces is a varying part.
"""

CHAPTERS: Final = {
    "T": (
        "The shape of the document",
        "The API server checks these rules before any webhook; `hyperjob lint` does so offline.",
    ),
    "V": (
        "What Volcano and Kubernetes refuse",
        "Volcano or the API server of a member cluster would refuse the sub-job or its pods.",
    ),
    "V8": (
        "What Kubernetes refuses in a pod template",
        "The id of a rule contains the API type and the field.",
    ),
    "F": (
        "Policies and disruption budgets",
        "Volcano's webhook has the same rules, but reports only the first error.",
    ),
    "X": (
        "What no other component checks",
        "Every other component accepts these specs, and the job fails while it runs.",
    ),
    "L": (
        "Failure, success, order and plugins of a HyperJob",
        "These rules are about the HyperJob's own policies.",
    ),
}


def render() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield INTRO
    yield "## What is filled in"
    yield ""
    yield "The mutating webhook adds these defaults, as Volcano's webhook does for a vcjob; it"
    yield "never replaces a value."
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
    """Return the form of a rule's message, as it follows the field's path."""
    if rule.kind is None:
        return f"warning: {rule.form}"
    body = FieldError(rule.kind, "", "…", rule.form).body
    return body.replace('"…"', "…").replace("`", "'")


def main() -> None:
    """Write the page to the file in the first argument."""
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
