"""Preflight says where Karmada and its members disagree for longer than a moment."""

from hyperjob.cli.preflight import agreement
from hyperjob.client.restored import Difference, Kind, Report
from hyperjob_core.api.field import make_status
from hyperjob_core.kube.errors import Forbidden
from hyperjob_install.preflight import Finding, Status


def difference(name: str, kind: Kind = Kind.GONE, **more: object) -> Difference:
    return Difference(namespace="ns", name=name, kind=kind, hyperjob="a", **more)  # type: ignore[arg-type]


async def ask(*reports: Report) -> tuple[Finding, list[float]]:
    """Let preflight read the reports in turn; return its finding and the pauses between them."""
    left, pauses = list(reports), []

    async def read() -> Report:
        return left.pop(0)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    found = await agreement(read, pause=pause)
    assert not left, "preflight reads no more than it needs"
    return found, pauses


async def test_members_that_agree_are_read_once() -> None:
    found, pauses = await ask(Report([]))
    assert (found.check, found.verdict.status) == ("members-agree", Status.OK)
    assert pauses == []


async def test_a_difference_that_stays_is_a_warning_with_the_command_that_shows_all() -> None:
    both = Report([difference("a-0"), difference("b-0", Kind.FOREIGN, phase="Running")])
    found, pauses = await ask(both, both)
    assert found.verdict.status is Status.WARNING
    assert "2 vcjobs differ" in found.verdict.message
    assert "ns/a-0, ns/b-0" in found.verdict.message
    assert found.verdict.remedy == "hyperjob after-restore"
    assert pauses == [5.0]


async def test_a_sub_job_that_starts_or_ends_meanwhile_is_no_difference() -> None:
    found, _ = await ask(Report([difference("a-0")]), Report([difference("b-0")]))
    assert found.verdict.status is Status.OK


async def test_a_vcjob_that_has_ended_or_starts_nothing_is_no_difference() -> None:
    settled = [
        difference("old-0", Kind.FOREIGN, phase="Completed"),
        difference("held-0", Kind.UNPLACED, adopts=False),
    ]
    found, _ = await ask(Report(settled))
    assert found.verdict.status is Status.OK


async def test_a_member_that_cannot_be_read_is_named() -> None:
    found, _ = await ask(Report([], {"west": "the server refuses it"}))
    assert found.verdict.status is Status.NOTE
    assert "west" in found.verdict.message


async def test_a_karmada_that_forbids_the_lists_is_a_note() -> None:
    async def read() -> Report:
        raise Forbidden(make_status(403, "you may not list works"))

    found = await agreement(read)
    assert found.verdict.status is Status.NOTE
    assert "you may not list works" in found.verdict.message
