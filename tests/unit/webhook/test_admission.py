"""Reviews in, answers out: the envelope, the three webhooks, and what is no review at all."""

import base64
import copy
import json
from pathlib import Path

import jsonpatch
import orjson
import pytest

from hyperjob import __version__
from hyperjob_core.api.names import WEBHOOK_VERSION
from hyperjob_rules.configuration import (
    MUTATE_HYPERJOB,
    MUTATE_RESOURCEBINDING,
    PATHS,
    VALIDATE_HYPERJOB,
)
from hyperjob_webhook import admission
from hyperjob_webhook.admission import admit
from hyperjob_webhook.review import MAX_BODY_BYTES, MAX_ODD_VALUES, MAX_VALUES, BadReview, decode

DATA = Path(__file__).parent / "data"
RECORDED = [
    json.loads(line) for line in (DATA / "admission-reviews.jsonl").read_text().splitlines()
]


def label(review):
    request = review["request"]
    parts = (request["kind"]["kind"], request["operation"], request.get("subResource"))
    return "-".join(filter(None, (*parts, request["name"])))


def recorded(kind, operation="CREATE", **more):
    for review in RECORDED:
        request = review["request"]
        if (request["kind"]["kind"], request["operation"]) == (kind, operation) and all(
            request.get(key) == value for key, value in more.items()
        ):
            return copy.deepcopy(review)
    raise LookupError(kind)


def post(path, review):
    reply = admit(path, review if isinstance(review, bytes) else orjson.dumps(review))
    return reply.status, orjson.loads(reply.body)


def patched(review, response):
    patch = json.loads(base64.b64decode(response["patch"]))
    return jsonpatch.apply_patch(review["request"]["object"], patch)


def changes_an_image(request):
    """Tell the one recorded change that the sub-jobs cannot take."""
    if request["operation"] != "UPDATE" or "subResource" in request:
        return False
    new, old = (json.dumps(request[key]["spec"]) for key in ("object", "oldObject"))
    return new.count("train:v2") > old.count("train:v2")


OWN_PATHS = {
    "HyperJob": (MUTATE_HYPERJOB, VALIDATE_HYPERJOB),
    "ResourceBinding": (MUTATE_RESOURCEBINDING,),
}


@pytest.mark.parametrize("review", RECORDED, ids=label)
@pytest.mark.parametrize("path", sorted(PATHS))
def test_recorded_reviews_are_answered_on_their_own_path_and_no_other(review, path):
    request = review["request"]
    status, answer = post(path, review)
    judged = request["operation"] in {"CREATE", "UPDATE"} and "subResource" not in request
    if judged and path not in OWN_PATHS.get(request["kind"]["kind"], ()):
        assert (status, answer["reason"]) == (400, "BadRequest")
        assert f"got {request['kind']['group']}/" in answer["message"]
        return
    assert status == 200
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = answer["response"]
    assert response["uid"] == request["uid"]
    refused = path == VALIDATE_HYPERJOB and changes_an_image(request)
    assert response["allowed"] is not refused, response
    assert ("patch" in response) == ("patchType" in response)
    if not judged:
        assert set(response) == {"uid", "allowed"}


@pytest.mark.parametrize(
    "review", [r for r in RECORDED if r["request"]["kind"]["kind"] == "ResourceBinding"], ids=label
)
def test_bindings_of_other_controllers_are_never_changed(review):
    """Those in the recordings are the Go controller's: without our affinity name."""
    _, answer = post(MUTATE_RESOURCEBINDING, review)
    assert set(answer["response"]) == {"uid", "allowed"}


@pytest.mark.parametrize(
    "review",
    [
        r
        for r in RECORDED
        if r["request"]["kind"]["kind"] == "HyperJob" and r["request"]["operation"] == "CREATE"
    ],
    ids=label,
)
def test_recorded_hyperjobs_are_stored_as_they_are_and_accepted(review):
    assert "patch" not in post(MUTATE_HYPERJOB, review)[1]["response"]
    assert post(VALIDATE_HYPERJOB, review)[1]["response"]["allowed"]


def test_a_task_without_a_name_gets_the_key_that_the_api_server_demands():
    review = recorded("HyperJob", name="llm-training")
    (task,) = review["request"]["object"]["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"]
    del task["name"]
    answer = post(MUTATE_HYPERJOB, review)[1]["response"]
    path = "/spec/replicatedJobs/0/templateSpec/tasks/0/name"
    assert json.loads(base64.b64decode(answer["patch"])) == [
        {"op": "add", "path": path, "value": "default0"}
    ]


@pytest.mark.parametrize(("asked", "answer"), [("", __version__), ("0.0.1", "0.0.1")])
def test_an_empty_annotation_asks_for_the_release_of_the_webhook(asked, answer):
    review = recorded("HyperJob")
    review["request"]["object"]["metadata"]["annotations"] = {WEBHOOK_VERSION: asked}
    _, answered = post(MUTATE_HYPERJOB, review)
    found = patched(review, answered["response"]) if asked == "" else review["request"]["object"]
    assert found["metadata"]["annotations"] == {WEBHOOK_VERSION: answer}
    assert ("patch" in answered["response"]) == (asked == "")


def test_a_refusal_names_every_field_in_the_words_of_kubernetes():
    review = recorded("HyperJob", name="llm-training")
    spec = review["request"]["object"]["spec"]
    spec["replicatedJobs"].append(copy.deepcopy(spec["replicatedJobs"][0]))
    spec["minAvailable"] = 1000
    status, answer = post(VALIDATE_HYPERJOB, review)
    response = answer["response"]
    assert status == 200
    assert not response["allowed"]
    refusal = response["status"]
    assert (refusal["code"], refusal["reason"]) == (422, "Invalid")
    assert refusal["message"].startswith(
        'HyperJob.training.volcano.sh "llm-training" is invalid: [spec.'
    )
    causes = {cause["field"]: cause for cause in refusal["details"]["causes"]}
    assert causes["spec.replicatedJobs[1].name"]["reason"] == "FieldValueDuplicate"
    assert causes["spec.replicatedJobs[1].name"]["message"] == (
        'Duplicate value: "trainer" (remedy: rename one of them)'
    )
    assert refusal["details"]["kind"] == "HyperJob"


def test_an_object_without_a_name_yet_is_named_by_its_stem():
    review = recorded("HyperJob", name="llm-training")
    review["request"]["name"] = ""
    review["request"]["object"]["metadata"] = {"generateName": "llm-"}
    review["request"]["object"]["spec"]["minAvailable"] = 1000
    _, answer = post(VALIDATE_HYPERJOB, review)
    assert answer["response"]["status"]["message"].startswith(
        'HyperJob.training.volcano.sh "llm-" is invalid'
    )


@pytest.mark.parametrize("spec", [{"nonsense": True}, {}, {"replicatedJobs": None}, None])
def test_an_object_that_is_being_deleted_may_lose_its_finalizers_whatever_it_is(spec):
    review = recorded("HyperJob", "UPDATE", subResource=None)
    for version in ("object", "oldObject"):
        review["request"][version]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        review["request"][version]["spec"] = spec
    review["request"]["oldObject"]["metadata"]["finalizers"] = ["example.com/wait"]
    for path in (MUTATE_HYPERJOB, VALIDATE_HYPERJOB):
        assert post(path, review)[1]["response"] == {
            "uid": review["request"]["uid"],
            "allowed": True,
        }


def test_the_spec_of_an_object_that_is_being_deleted_does_not_change():
    review = recorded("HyperJob", "UPDATE", subResource=None)
    for version in ("object", "oldObject"):
        review["request"][version]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    review["request"]["object"]["spec"]["replicatedJobs"][0]["replicas"] = 20_000_000
    assert post(MUTATE_HYPERJOB, review)[1]["response"]["allowed"]
    response = post(VALIDATE_HYPERJOB, review)[1]["response"]
    assert not response["allowed"]
    assert "may not be changed while the HyperJob is being deleted" in response["status"]["message"]


@pytest.mark.parametrize("field", ["oldObject", "dryRun", "options", "requestKind", "userInfo"])
def test_a_create_needs_none_of(field):
    review = recorded("HyperJob", name="llm-training")
    del review["request"][field]
    assert post(VALIDATE_HYPERJOB, review)[1]["response"]["allowed"]


def without(*path):
    def edit(review):
        target = review
        for key in path[:-1]:
            target = target[key]
        del target[path[-1]]

    return edit


def having(*path, value):
    def edit(review):
        target = review
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return edit


BAD_REVIEWS = {
    "another apiVersion": (having("apiVersion", value="admission.k8s.io/v1beta1"), "v1beta1"),
    "another kind": (having("kind", value="Pod"), "expected apiVersion"),
    "no request": (without("request"), "request: Required value"),
    "a request that is a list": (having("request", value=[]), "request: Required value"),
    "no uid": (without("request", "uid"), "request.uid: Required value"),
    "an empty uid": (having("request", "uid", value=""), "request.uid: Required value"),
    "a numeric uid": (having("request", "uid", value=1), "request.uid: Required value"),
    "no operation": (without("request", "operation"), "request.operation: Unsupported value"),
    "an unknown operation": (having("request", "operation", value="PATCH"), "'PATCH'"),
    "no kind": (without("request", "kind"), "this path judges"),
    "another version": (having("request", "kind", "version", value="v2"), "v2 HyperJob"),
    "a kind that is text": (having("request", "kind", value="HyperJob"), "request.kind"),
    "no object": (without("request", "object"), "request.object: Required value"),
    "a null object": (having("request", "object", value=None), "request.object: Required value"),
    "an object that is a list": (having("request", "object", value=[]), "request.object"),
    "an oldObject that is text": (having("request", "oldObject", value="x"), "request.oldObject"),
    "a name that is a number": (having("request", "name", value=7), "name: Invalid value"),
    "a user that is a number": (having("request", "userInfo", value={"username": 1}), "username"),
}


@pytest.mark.parametrize(("edit", "text"), BAD_REVIEWS.values(), ids=BAD_REVIEWS.keys())
@pytest.mark.parametrize("path", [MUTATE_HYPERJOB, VALIDATE_HYPERJOB])
def test_bad_reviews_are_400_with_the_reason(path, edit, text):
    review = recorded("HyperJob", name="llm-training")
    edit(review)
    status, answer = post(path, review)
    assert (status, answer["kind"], answer["code"]) == (400, "Status", 400)
    assert text in answer["message"]


@pytest.mark.parametrize(("letters", "shown"), [(98, "x" * 98 + "'"), (99, "x" * 99 + "…")])
def test_a_bad_value_is_shown_up_to_100_characters(letters, shown):
    review = recorded("HyperJob", name="llm-training")
    review["request"]["operation"] = "x" * letters
    _, answer = post(VALIDATE_HYPERJOB, review)
    assert answer["message"].endswith(f"Unsupported value: '{shown}")


def test_an_update_without_the_old_object_cannot_be_validated():
    review = recorded("HyperJob", "UPDATE", subResource=None)
    review["request"]["oldObject"] = None
    status, answer = post(VALIDATE_HYPERJOB, review)
    assert status == 400
    assert "request.oldObject: Required value" in answer["message"]


GOOD = orjson.dumps(recorded("HyperJob", name="llm-training"))
BAD_BODIES = {
    "nothing": (b"", 400, "no JSON document"),
    "text": (b"hello", 400, "no JSON document"),
    "a list": (b"[]", 400, "no JSON object"),
    "a truncated review": (GOOD[:-2], 400, "no JSON document"),
    "a torn character": (GOOD.replace(b"llm", b"\xff\xfe", 1), 400, "no JSON document"),
    "a lone surrogate": (GOOD.replace(b"llm", b"\\ud800", 1), 400, "no JSON document"),
    "two documents": (GOOD + GOOD, 400, "no JSON document"),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, 400, "no JSON document"),
    "NaN": (b'{"a":NaN}', 400, "no JSON document"),
    "a number without end": (b'{"a":1e999}', 400, "no JSON document"),
    "an integer without end": (b'{"a":' + b"9" * 5000 + b"}", 400, "no JSON document"),
    "nesting beyond the parser": (b'{"a":' + b"[" * 100_000, 400, "no JSON document"),
    "closed nesting": (b'{"a":' + b"[" * 300 + b"]" * 300 + b"}", 400, "254 levels"),
    "a duplicate key": (GOOD.replace(b'"kind"', b'"kind":"x","kind"', 1), 400, "duplicate field"),
    "a deep duplicate key": (
        GOOD.replace(b'"replicas":2', b'"replicas":2,"replicas":3', 1),
        400,
        "duplicate field 'replicas'",
    ),
    "an escaped duplicate key": (b'{"a":1,"\\u0061":2}', 400, "duplicate field 'a'"),
    "too many bytes": (b" " * (MAX_BODY_BYTES + 1), 413, "larger than"),
    "too many values": (b"[" + b"1," * MAX_VALUES + b"1]", 413, "more than"),
    "too many nested values": (b"[" + b"[[1]]," * (MAX_VALUES // 3 + 1) + b"1]", 413, "more than"),
    "too many values in odd spelling": (
        b'{"\\u0061": [' + b"1," * MAX_ODD_VALUES + b"1]}",
        413,
        "no API server writes it so",
    ),
    "too many maps": (b"[" + b'{"a":1},' * (MAX_VALUES // 2) + b"1]", 413, "more than"),
}


@pytest.mark.parametrize(("body", "code", "text"), BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_bad_bodies(body, code, text):
    status, answer = post(VALIDATE_HYPERJOB, body)
    assert status == answer["code"] == code
    assert text in answer["message"]


SPELLINGS = {
    "as orjson writes": lambda review: orjson.dumps(review),
    "with a newline at the end, as Go's encoder": lambda review: orjson.dumps(review) + b"\n",
    "with spaces": lambda review: json.dumps(review).encode(),
    "indented": lambda review: json.dumps(review, indent=2).encode(),
    "with escapes for HTML, as Go writes": lambda review: (
        orjson.dumps(review)
        .replace(b"&", b"\\u0026")
        .replace(b"<", b"\\u003c")
        .replace(b">", b"\\u003e")
    ),
    "in ASCII": lambda review: json.dumps(review, ensure_ascii=True).encode(),
    "with exponents": lambda review: orjson.dumps(review).replace(
        b'"maxDomains":2', b'"maxDomains":2e0'
    ),
}


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_every_spelling_of_a_review_is_read(spell):
    review = recorded("HyperJob", name="llm-training")
    containers = review["request"]["object"]["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"]
    containers[0]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "a && b < ü > c"]
    decoded = decode(spell(review))
    assert decoded.object == review["request"]["object"]


def test_numbers_beyond_64_bits_are_the_schema_s_to_refuse():
    body = GOOD.replace(b'"minAvailable":2', b'"minAvailable":123456789012345678901234567890', 1)
    status, answer = post(VALIDATE_HYPERJOB, body)
    assert status == 200
    assert not answer["response"]["allowed"]


def test_an_unknown_path_names_the_known_ones():
    status, answer = post("/mutate", GOOD)
    assert status == 404
    assert MUTATE_RESOURCEBINDING in answer["message"]


class BrokenError(Exception):
    pass


def broken(*_arguments, **_named):
    raise BrokenError("secret detail")


@pytest.mark.parametrize(
    ("path", "function"), [(MUTATE_HYPERJOB, "stored"), (VALIDATE_HYPERJOB, "validate_create")]
)
def test_our_own_bug_is_a_500_and_never_a_denial(path, function, monkeypatch):
    monkeypatch.setattr(admission, function, broken)
    reply = admit(path, GOOD)
    assert reply.status == 500
    assert isinstance(reply.bug, BrokenError)
    answer = orjson.loads(reply.body)
    assert answer["reason"] == "InternalError"
    assert "secret" not in answer["message"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"a b":1,"ab":2,"a b":1}',
        b'{"a b": 1,"ab": 2, "a b":1}',
        b'{ "a":{"b":1 ,"b":1}}',
        b'[{"a": 1, "a" :1}]',
        b'{"a":1, "a": 1}',
    ],
)
def test_no_blank_hides_a_key_that_is_there_twice(body):
    review = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","x":' + body + b"}"
    with pytest.raises(BadReview, match="duplicate field"):
        decode(review)


def test_large_reviews_with_blanks_are_read():
    body = (
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": null, "x": ['
    )
    body += b" 1," * (2 * MAX_ODD_VALUES) + b"1]}"
    with pytest.raises(BadReview, match="request: Required value"):
        decode(body)


@pytest.mark.parametrize(("values", "code"), [(MAX_VALUES - 1, 400), (MAX_VALUES, 413)])
def test_a_body_has_fewer_values_than_the_limit(values, code):
    body = b"[" + b"1," * (values - 1) + b"1]" + b" " * 9
    assert post(VALIDATE_HYPERJOB, body)[0] == code


def test_a_deleted_object_is_named_by_what_it_was():
    review = recorded("HyperJob", name="llm-training")
    request = review["request"]
    request |= {"operation": "DELETE", "name": "", "oldObject": request["object"], "object": None}
    assert admit(VALIDATE_HYPERJOB, orjson.dumps(review)).request.name == "llm-training"
