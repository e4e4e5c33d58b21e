"""The bytes of an answer: what goes into it, and the limits of each part."""

import json
from http import HTTPStatus
from typing import Any

import pytest

from hyperjob_core.api.field import ErrorType, FieldError
from hyperjob_rules.validation.rules import Decision
from hyperjob_webhook.admission import check_http, fail, refuse
from hyperjob_webhook.review import (
    MAX_BODY_BYTES,
    AdmissionRequest,
    cut_warnings,
    denial,
    encode,
    failure,
)

REQUEST = AdmissionRequest(
    "u1", "training.volcano.sh", "v1alpha1", "HyperJob", "", "CREATE", "team", "hj", "me",
    dry_run=False, size=1, object={}, old_object=None,
)  # fmt: skip


def test_a_failure_is_a_status_with_the_reason_of_kubernetes():
    assert json.loads(failure(413, "why")) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "why",
        "reason": "RequestEntityTooLarge",
        "code": 413,
    }


def wrong(detail: str = "must be positive", value: Any = "x", field: str = "spec.a") -> FieldError:
    return FieldError(ErrorType.INVALID, field, value, detail)


def answer(decision: Decision) -> Any:
    review = json.loads(encode(REQUEST, decision))
    assert (review.pop("kind"), review.pop("apiVersion")) == (
        "AdmissionReview",
        "admission.k8s.io/v1",
    )
    (response,) = review.values()
    assert response.pop("uid") == "u1"
    return response


def test_a_refusal_has_a_status_and_no_patch():
    found = answer(
        Decision(patch=[{"op": "remove", "path": "/x"}], errors=[wrong()], warnings=["careful"])
    )
    status = denial(REQUEST, [wrong()])
    assert found == {"allowed": False, "status": status, "warnings": ["careful"]}
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"] == (
        'HyperJob.training.volcano.sh "hj" is invalid: spec.a: Invalid value: "x": must be positive'
    )


@pytest.mark.parametrize(("count", "more"), [(199, 0), (200, 0), (201, 1), (450, 250)])
def test_two_hundred_errors_are_told_and_the_rest_is_counted(count: int, more: int):
    status = denial(REQUEST, [wrong(field=f"f{number}") for number in range(count)])
    assert len(status["details"]["causes"]) == min(count, 200)
    said = f" (and at least {more} more errors)"
    assert status["message"].endswith(said) is bool(more)
    assert ("more errors" in status["message"]) is bool(more)


@pytest.mark.parametrize("over", [0, 1])
def test_a_message_has_32_kibibytes_and_a_cause_4(over: int):
    fixed = len(denial(REQUEST, [wrong("y")])["message"]) - 1
    status = denial(REQUEST, [wrong("y" * (32 * 1024 - fixed + over))])
    assert len(status["message"]) == 32 * 1024
    assert status["message"].endswith("…") is bool(over)
    fixed = len(denial(REQUEST, [wrong("y")])["details"]["causes"][0]["message"]) - 1
    (cause,) = denial(REQUEST, [wrong("y" * (4096 - fixed + over))])["details"]["causes"]
    assert len(cause["message"]) == 4096
    assert cause["message"].endswith("…") is bool(over)


@pytest.mark.parametrize("over", [0, 1])
def test_one_warning_has_256_characters(over: int):
    (kept,) = cut_warnings(["w" * (256 + over)])
    assert len(kept) == 256
    assert kept.endswith("…") is bool(over)


def test_all_warnings_have_4096_characters_with_the_notice_of_those_left_out():
    fifteen = [f"{number:02}" + "w" * 254 for number in range(15)]
    assert cut_warnings([*fifteen, "z" * 256]) == [*fifteen, "z" * 256]
    two, one = (f"{left} more warnings are not shown" for left in (2, 1))
    room = 256 - len(two)
    assert cut_warnings([*fifteen, "z" * (room + 1), "y"]) == [*fifteen, two]
    assert cut_warnings([*fifteen, "z" * room, "y" * 29]) == [*fifteen, "z" * room, "y" * 29]
    assert cut_warnings([*fifteen, "z" * room, "y" * 30]) == [*fifteen, "z" * room, one]


def test_a_warning_is_one_line_and_said_once():
    assert cut_warnings([" a\nb\t", "a b", "c"]) == ["a b", "c"]


def test_a_failure_of_ours_names_the_kind_of_bug_and_not_its_words():
    reply = fail(ValueError("secret"), request=REQUEST)
    text = "the webhook failed on this request: ValueError; its log says more"
    assert (reply.status, reply.problem, reply.request) == (500, text, REQUEST)
    assert json.loads(reply.body)["message"] == text
    assert isinstance(reply.bug, ValueError)
    refused = refuse(404, "none", request=REQUEST)
    assert (refused.status, refused.problem, refused.bug) == (404, "none", None)
    assert refused.request is REQUEST


HEADS = {
    "a review": ({}, None),
    "a review of unknown length": ({"length": None}, None),
    "a type in capitals with its charset": (
        {"content_type": "Application/JSON ; charset=utf-8"},
        None,
    ),
    "no coding by name": ({"content_encoding": "Identity"}, None),
    "the longest body": ({"length": MAX_BODY_BYTES}, None),
    "a longer body": (
        {"length": MAX_BODY_BYTES + 1},
        (413, "the body is larger than 7340032 bytes"),
    ),
    "another method": ({"method": "PUT"}, (405, "method PUT is not allowed: reviews are posted")),
    "a method without end": (
        {"method": "X" * 21},
        (405, f"method {'X' * 20} is not allowed: reviews are posted"),
    ),
    "no type": ({"content_type": ""}, (415, "content type must be application/json, got nothing")),
    "a type without end": (
        {"content_type": "x" * 101},
        (415, f"content type must be application/json, got {'x' * 100}"),
    ),
    "a coding without end": (
        {"content_encoding": "z" * 101},
        (415, f"content encoding {'z' * 100} is not supported"),
    ),
}


@pytest.mark.parametrize(("change", "expected"), HEADS.values(), ids=HEADS.keys())
def test_a_head_is_judged_in_the_order_of_method_type_coding_and_length(change, expected):
    head = {"method": "POST", "content_type": "application/json", "content_encoding": ""}
    reply = check_http(**({**head, "length": 0} | change))
    assert (None if reply is None else (reply.status, reply.problem)) == expected
    if reply is not None:
        assert json.loads(reply.body)["code"] == reply.status
        assert HTTPStatus(reply.status)
