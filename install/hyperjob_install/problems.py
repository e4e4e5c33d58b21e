"""The problems that prevent an installation, each with a remedy.

Problems found before the first write are values: the command prints all of them together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob_core.kube.errors import KubeError
from hyperjob_install.interpreters import VOLCANO_GLOBAL, Clash

NOT_OURS: Final = "exists, and hyperjob install did not create it"


class InstallError(Exception):
    """The installation cannot continue; the text has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why an object cannot be installed, and the remedy."""

    title: str
    message: str
    remedy: str


def problems_text(problems: Sequence[Problem]) -> str:
    """Return the text of all problems and remedies, for an installation that wrote nothing."""
    lines = [f"{problem.title}: {problem.message}\n    {problem.remedy}" for problem in problems]
    return "\n  ".join(["no object was changed, because of these problems:", *lines])


def field_conflict(title: str, error: KubeError) -> Problem:
    """Return the problem of fields that another field manager owns."""
    owned: dict[str, list[str]] = {}
    for cause in error.causes:
        manager = cause.get("message", "").removeprefix("conflict with ")
        owned.setdefault(manager, []).append(cause.get("field", ""))
    who = "; ".join(f"{', '.join(fields)} by {manager}" for manager, fields in owned.items())
    return Problem(
        title,
        f"owned by another field manager: {who or error.message}",
        "take them over with --allow conflicts, or remove them from the other manager's manifest",
    )


def taken(title: str) -> Problem:
    """Return the problem of an object of another owner that has the name."""
    return Problem(
        title,
        NOT_OURS,
        "delete it, or take it over with --allow conflicts: hyperjob uninstall then deletes it",
    )


def clash(found: Clash) -> Problem:
    """Return the problem of a customization that conflicts with HyperJob's."""
    delete = (
        f"kubectl delete resourceinterpretercustomization {found.name} (HyperJob's replaces it)"
    )
    if found.name in VOLCANO_GLOBAL:
        delete = "replace Volcano Global's customization with --allow interpreters"
    return Problem(
        f"resourceinterpretercustomization.config.karmada.io/{found.name}",
        f"it defines {', '.join(found.operations)} of {found.target}, and Karmada accepts one"
        " script for each",
        f"{delete}, or skip HyperJob's with --skip interpreters",
    )


def lost(title: str, fields: Iterable[str]) -> Problem:
    """Return the problem of an older CRD that would drop fields of stored HyperJobs."""
    return Problem(
        title,
        "the installed CRD has fields that this release's lacks, and HyperJobs would lose them at"
        f" their next write: {', '.join(fields)}",
        "use the release that installed the CRD, or a newer release, or drop the fields with"
        " --allow field-loss",
    )


def refused(title: str, error: KubeError) -> Problem:
    """Return the problem of a request that the API server refused."""
    match error.http_code:
        case 403:
            remedy = "use a kubeconfig of an administrator of the Karmada API server"
        case 404:
            remedy = (
                "the API server does not serve its kind: check that --kubeconfig names the Karmada"
                " API server"
            )
        case 0 | 503 | 504 | 500:
            remedy = "the API server, or a webhook that it calls, failed: try again"
        case _:
            remedy = "correct the cause and try again"
    return Problem(title, error.message, remedy)
