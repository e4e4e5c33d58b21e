"""Plan the HyperJobs of a file in their order. Pure."""

from hyperjob.cli.lint.check import check
from hyperjob.cli.lint.documents import ManifestFile
from hyperjob.client.plan.judge import Judgement
from hyperjob.client.plan.judge import judge as judge_one
from hyperjob.client.plan.world import Snapshot


def judge(source: ManifestFile, world: Snapshot) -> tuple[list[Judgement], Snapshot]:
    """Plan the HyperJobs of a file in their order; return judgements and the world after them."""
    found = []
    checked = {document.line: document for document in check(source).documents}
    for document in source.documents:
        if document.line in checked:
            errors = [item.text for item in checked[document.line].errors if item.rule == "T4"]
            judgement, world = judge_one(document.content, world, line=document.line, errors=errors)
            found.append(judgement)
    return found, world
