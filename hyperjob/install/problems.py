"""Why an installation cannot be done, each with the way out.

Problems that are known before anything is written are values: all of them are printed at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hyperjob.install.interpreters import VOLCANO_GLOBAL, Clash
from hyperjob.kube.errors import KubeError


class InstallError(Exception):
    """It cannot go on; says why and what to do."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why one object cannot be as it should, and the remedy."""

    title: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.title}: {self.message}\n  {self.remedy}"


def problems_text(problems: Sequence[Problem]) -> str:
    """Say why nothing was done, and the way out of each."""
    lines = [f"{problem.title}: {problem.message}\n    {problem.remedy}" for problem in problems]
    return "\n  ".join(["nothing was changed, because", *lines])


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
        "take them over with --force-conflicts, or take them out of what the other one applies",
    )


def clash(found: Clash) -> Problem:
    """Return the problem of a customization that keeps ours out."""
    delete = f"kubectl delete resourceinterpretercustomization {found.name} (ours replaces it)"
    if found.name in VOLCANO_GLOBAL:
        delete = "replace it, which is Volcano Global's, with --replace"
    return Problem(
        f"resourceinterpretercustomization.config.karmada.io/{found.name}",
        f"it defines {', '.join(found.operations)} of {found.target} already, and Karmada takes"
        " one script for each",
        f"{delete}, or leave ours out with --skip interpreters",
    )


def lost(title: str, fields: Iterable[str]) -> Problem:
    """Return the problem of an older definition that would drop fields of stored HyperJobs."""
    return Problem(
        title,
        "the installed definition knows fields that this release does not, and HyperJobs that use"
        f" them would lose them at their next write: {', '.join(fields)}",
        "use the release that installed it, or a newer one, or give up the fields with"
        " --allow-field-loss",
    )


def refused(title: str, error: KubeError) -> Problem:
    """Return the problem of a request that the API server refused."""
    match error.http_code:
        case 403:
            remedy = "use a kubeconfig of an administrator of the Karmada API server"
        case 404:
            remedy = "its kind is not served: is --kubeconfig that of the Karmada API server?"
        case 0 | 503 | 504 | 500:
            remedy = "the API server, or a webhook that it calls, is not well: try again"
        case _:
            remedy = "correct what it says and try again; nothing else was changed by this"
    return Problem(title, error.message, remedy)
