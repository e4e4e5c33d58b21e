"""`hyperjob after-restore`: compare a restored Karmada API server with its members."""

from dataclasses import asdict

import click
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import FailureError, run
from hyperjob.client import restored
from hyperjob.client.restored import Difference, Kind
from hyperjob.table import table
from hyperjob_core.text import listed


@click.command("after-restore")
@access(namespaced=False)
@click.option("--apply", is_flag=True, help="Write the changes; without it the command only reads.")
@out.output(out.JSON, out.YAML)
def after_restore(access: Access, apply: bool, form: str) -> None:
    """Compare the vcjobs of the members with a Karmada that was put back from a backup.

    Run it before Karmada's controller manager and scheduler and HyperJob's controller start: they
    would start sub-jobs a second time that were moved or admitted after the backup, and start again
    what was deleted or suspended. With --apply the command pins each moved sub-job to the cluster
    that runs it, adopts those that Karmada does not know, and suspends the HyperJobs that would
    start again. It deletes no vcjob of a member. Exit code 1: there are differences, or a cluster
    cannot be read.

    Example: hyperjob after-restore --apply
    """

    async def compare() -> None:
        async with access.connect() as kube:
            found = await restored.report(kube)
            if apply:
                await restored.correct(kube, found.differences, said=out.remark)
                found = await restored.report(kube)
        if form:
            differences = [asdict(each) for each in found.differences]
            out.dump({"differences": differences, "unread": dict(found.unread)}, form)
        elif found.differences:
            rows = [
                (
                    each.namespace,
                    each.name,
                    each.found or "-",
                    each.expected or "-",
                    Text(_say(each)),
                )
                for each in found.differences
            ]
            out.say(table(("NAMESPACE", "VCJOB", "MEMBER", "KARMADA", "MESSAGE"), rows))
        if found.unread:
            errors = [f"{name}: {error}" for name, error in sorted(found.unread.items())]
            raise FailureError(f"clusters cannot be read: {listed(errors)}")
        if left := [each for each in found.differences if not restored.is_settled(each)]:
            raise FailureError(f"{len(left)} vcjobs differ between Karmada and the members")

    run(compare())


def _say(each: Difference) -> str:
    match each.kind:
        case Kind.ELSEWHERE:
            return (
                f"Karmada would start it in {each.expected} again: --apply pins it to {each.found}"
            )
        case Kind.TWICE:
            return f"both clusters have it: delete it in {each.found}, or wait for its end"
        case Kind.GONE:
            return "Karmada would start it again" + (
                f": --apply suspends HyperJob {each.hyperjob}"
                if each.suspends
                else f" beside other sub-jobs of HyperJob {each.hyperjob}, which run"
            )
        case Kind.UNPLACED if each.adopts:
            return (
                f"HyperJob {each.hyperjob} would start it in any cluster: --apply adopts it where"
                " it is, and resumes a suspended HyperJob"
            )
        case Kind.UNPLACED:
            return f"HyperJob {each.hyperjob} does not need it: delete it there"
        case Kind.FOREIGN:
            return (
                f"Karmada has no HyperJob {each.hyperjob}: apply it again with clusterNames"
                f" [{each.found}], or delete the vcjob there"
            )
