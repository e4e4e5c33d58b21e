"""The errors of commands and of the SDK: kubectl's words, exit codes, and classes."""

import asyncio
from typing import Any

import click
import pytest

from hyperjob.cli.kubectl.exits import FailureError, ServerError, run
from hyperjob.client.errors import ClientError, NeverError, NotYetError, words
from hyperjob.client.members import pod_counts, tasks_of
from hyperjob.client.summary import read
from hyperjob.sdk import errors as sdk
from hyperjob_core.kube.errors import ConfigError, KubeError, from_status, unreachable
from tests.unit.cli.objects import hyperjob, sub_job


def refusal(
    code: int, reason: str, message: str, request: str = "GET /x", **more: Any
) -> KubeError:
    return from_status({"code": code, "reason": reason, "message": message, **more}, request)


UNSERVED = "the server could not find the requested resource"
RENEW = "; log in again, or renew the token or certificate of the kubeconfig"
WORDS = {
    "Unable to connect to the server: ": unreachable("GET /x", "refused"),
    f"error: You must be logged in to the server (who?){RENEW}": refusal(
        401, "Unauthorized", "who?"
    ),
    f"error: You must be logged in to the server (Unauthorized){RENEW}": refusal(
        401, "Unauthorized", ""
    ),
    'error: the server doesn\'t have a resource type "hyperjobs"; is HyperJob installed there?'
    " hyperjob preflight": refusal(
        404, "NotFound", UNSERVED, "GET /apis/training.volcano.sh/v1alpha1/hyperjobs"
    ),
    "error: the server doesn't have a resource type of GET /apis/x/v1/y; is HyperJob installed"
    " there? hyperjob preflight": refusal(
        404, "NotFound", "404 page not found\n", "GET /apis/x/v1/y"
    ),
    'Error from server (NotFound): hyperjobs "x" not found': refusal(
        404, "NotFound", 'hyperjobs "x" not found'
    ),
    "Error from server (ServiceUnavailable): later": refusal(503, "ServiceUnavailable", "later"),
    f"Error from server (Conflict): {UNSERVED}": refusal(409, "Conflict", UNSERVED),
}


@pytest.mark.parametrize(("text", "error"), WORDS.items(), ids=[*map(str, range(len(WORDS)))])
def test_an_error_of_the_api_server_reads_as_in_kubectl(text: str, error: KubeError) -> None:
    assert words(error).startswith(text)
    assert text.endswith(": ") or words(error) == text


async def raising(error: BaseException) -> None:
    raise error


async def in_groups(error: Exception) -> None:
    raise ExceptionGroup("outer", [ExceptionGroup("inner", [error]), ValueError("second")])


@pytest.mark.parametrize(
    ("error", "kind", "line", "code"),
    [
        (refusal(403, "Forbidden", "no"), ServerError, "Error from server (Forbidden): no", 1),
        (ConfigError("no kubeconfig"), FailureError, "error: no kubeconfig", 1),
        (ClientError("no job"), FailureError, "error: no job", 1),
        (NotYetError("late"), FailureError, "error: late", 3),
        (NeverError("ended"), FailureError, "error: ended", 4),
    ],
)
def test_an_error_ends_a_command_with_one_line_and_a_code(
    error: Exception, kind: type[FailureError], line: str, code: int
) -> None:
    for work in (raising(error), in_groups(error)):
        with pytest.raises(click.ClickException) as ended:
            run(work)
        assert type(ended.value) is kind
        assert isinstance(ended.value, FailureError)
        assert f"{ended.value.prefix}{ended.value}" == line
        assert ended.value.exit_code == code
        assert ended.value.__suppress_context__


def test_a_bug_stays_what_it_is_and_ctrl_c_has_its_code() -> None:
    with pytest.raises(KeyError):
        run(raising(KeyError("bug")))
    with pytest.raises(KeyError):
        run(in_groups(KeyError("bug")))
    with pytest.raises(SystemExit) as ended:
        run(raising(KeyboardInterrupt()))
    assert ended.value.code == 130
    assert run(asyncio.sleep(0, "result")) == "result"


CAUSES = [{"field": "spec.a", "reason": "FieldValueRequired", "message": "Required value"}, {}]
SDK = {
    "never": (NeverError("x"), sdk.NeverReachedError),
    "not yet": (NotYetError("x"), sdk.NotReachedError),
    "another": (ClientError("x"), sdk.HyperJobError),
    "no kubeconfig": (ConfigError("x"), sdk.UnreachableError),
    "no answer": (unreachable("GET /x", "refused"), sdk.UnreachableError),
    "an answer that is none": (refusal(503, "ServiceUnavailable", "x"), sdk.HyperJobError),
    "not found": (refusal(404, "NotFound", "x"), sdk.NotFoundError),
    "forbidden": (refusal(403, "Forbidden", "x"), sdk.HyperJobError),
    "invalid": (refusal(422, "Invalid", "x", details={"causes": CAUSES}), sdk.InvalidError),
    "invalid without causes": (refusal(422, "Invalid", "x"), sdk.InvalidError),
}


@pytest.mark.parametrize(("error", "kind"), SDK.values(), ids=SDK.keys())
def test_the_sdk_has_an_exception_for_each_kind_of_error(
    error: Exception, kind: type[Exception]
) -> None:
    with pytest.raises(sdk.HyperJobError) as raised, sdk.translated():
        raise error
    assert type(raised.value) is kind
    expected = words(error) if isinstance(error, KubeError) else "x"
    assert str(raised.value) == expected


def test_an_invalid_hyperjob_has_its_fields() -> None:
    with pytest.raises(sdk.InvalidError) as raised, sdk.translated():
        raise refusal(422, "Invalid", "x", details={"causes": CAUSES})
    first, second = raised.value.fields
    assert first == sdk.FieldError("spec.a", "FieldValueRequired", "Required value")
    assert second == sdk.FieldError("", "", "")
    with pytest.raises(KeyError), sdk.translated():
        raise KeyError("a bug")


def vcjob(tasks: Any = None, **counters: int) -> Any:
    return {"status": {**counters, "taskStatusCount": tasks or {}}}


COUNTS = {
    "the counters of the vcjob": (vcjob(running=3, pending=1), {"running": 3, "pending": 1}),
    "the counters of its tasks": (
        vcjob({"a": {"phase": {"Running": 2}}, "b": {"phase": {"Running": 1, "Odd": 4}}}),
        {"running": 3, "odd": 4},
    ),
    "counters of both": (
        vcjob({"a": {"phase": {"Running": 9, "Failed": 1}}}, running=2),
        {"running": 2, "failed": 1},
    ),
    "no counter": (vcjob(), {"running": 1, "pending": 1}),
    "no vcjob": (None, {"running": 1, "pending": 1}),
}


@pytest.mark.parametrize(("found", "counts"), COUNTS.values(), ids=COUNTS.keys())
def test_pods_are_counted_by_state(found: Any, counts: dict[str, int]) -> None:
    (job,) = read(hyperjob("Running", sub_job(phase="Running", cluster="a", running=1))).jobs
    assert pod_counts(job, found) == counts


def test_without_a_vcjob_pods_of_no_cluster_or_of_an_ended_sub_job_are_not_pending() -> None:
    for fields in ({"phase": "Queued"}, {"phase": "Completed", "cluster": "a"}):
        (job,) = read(hyperjob("Running", sub_job(**fields))).jobs
        assert pod_counts(job, None) == {}
    assert tasks_of(None) == {}
    assert tasks_of(vcjob({"a": {"phase": {"Running": "x"}}, "b": None})) == {
        "a": {"running": 0},
        "b": {},
    }
