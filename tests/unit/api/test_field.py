"""Paths and refusals read as apimachinery's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api import field
from hyperjob_core.api.field import METADATA, OMIT, ROOT, SPEC, FieldError, Path
from hyperjob_core.api.quantity import Quantity

NAME = SPEC.child("replicatedJobs").index(0).child("name")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (ROOT, "<nil>"),
        (ROOT.child("spec"), "spec"),
        (SPEC, "spec"),
        (NAME, "spec.replicatedJobs[0].name"),
        (SPEC.child("a", "b", "c"), "spec.a.b.c"),
        (SPEC.child("plugins").key("pytorch").index(1), "spec.plugins[pytorch][1]"),
        (METADATA.child("labels").key("a.b/c"), "metadata.labels[a.b/c]"),
        (ROOT.index(3), "[3]"),
    ],
)
def test_a_path_prints_as_people_write_it(path: Path, text: str) -> None:
    assert str(path) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (field.required(NAME), "spec.replicatedJobs[0].name: Required value"),
        (
            field.required(NAME, "must name the job"),
            "spec.replicatedJobs[0].name: Required value: must name the job",
        ),
        (
            field.invalid(NAME, "A_b", "must be lower case"),
            'spec.replicatedJobs[0].name: Invalid value: "A_b": must be lower case',
        ),
        (field.invalid(SPEC, 0, "must be specified"), "spec: Invalid value: 0: must be specified"),
        (field.invalid(SPEC, True, ""), "spec: Invalid value: true"),
        (field.invalid(SPEC, None, "no"), "spec: Invalid value: null: no"),
        (field.invalid(SPEC, 2.5, ""), "spec: Invalid value: 2.5"),
        (field.invalid(SPEC, 3.0, ""), "spec: Invalid value: 3"),
        (field.invalid(SPEC, 1e21, ""), "spec: Invalid value: 1e+21"),
        (field.invalid(SPEC, -0.0, ""), "spec: Invalid value: -0"),
        (field.invalid(SPEC, float("nan"), ""), "spec: Invalid value: NaN"),
        (field.invalid(SPEC, float("-inf"), ""), "spec: Invalid value: -Inf"),
        (field.invalid(SPEC, OMIT, "no"), "spec: Invalid value: no"),
        (
            field.invalid(SPEC, Quantity.parse("1.5Gi"), "too much"),
            'spec: Invalid value: "1536Mi": too much',
        ),
        (
            field.invalid(SPEC, {"b": [1, "x<y"], "a": None}, ""),
            'spec: Invalid value: {"a":null,"b":[1,"x\\u003cy"]}',
        ),
        (
            field.type_invalid(SPEC, "string", "must be of type integer"),
            'spec: Invalid value: "string": must be of type integer',
        ),
        (
            field.not_supported(SPEC.child("mode"), "x", ["static", "auto"]),
            'spec.mode: Unsupported value: "x": supported values: "static", "auto"',
        ),
        (field.not_supported(SPEC, "x", []), 'spec: Unsupported value: "x"'),
        (field.duplicate(SPEC, {"name": "a"}), 'spec: Duplicate value: {"name":"a"}'),
        (field.duplicate(SPEC, "a"), 'spec: Duplicate value: "a"'),
        (field.forbidden(SPEC, "field is immutable"), "spec: Forbidden: field is immutable"),
        (field.too_long(SPEC, "secret", 12), "spec: Too long: may not be more than 12 bytes"),
        (field.too_long(SPEC, "secret", 1), "spec: Too long: may not be more than 1 byte"),
        (field.too_many(SPEC, 6, 5), "spec: Too many: 6: must have at most 5 items"),
        (field.too_many(SPEC, 2, 1), "spec: Too many: 2: must have at most 1 item"),
        (field.not_found(SPEC, "gone"), 'spec: Not found: "gone"'),
    ],
)
def test_a_refusal_reads_as_kubernetes_writes_it(error: FieldError, text: str) -> None:
    assert str(error) == text
    assert error.body == text.partition(": ")[2]


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("", '""'),
        ("plain", '"plain"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("a\n\t\r\a\b\f\v", '"a\\n\\t\\r\\a\\b\\f\\v"'),
        ("\x00\x7f", '"\\x00\\x7f"'),
        ("Überläufer 🚀", '"Überläufer 🚀"'),
        ("\u200b", '"\\u200b"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_strings_are_quoted_as_go_quotes_them(value: str, quoted: str) -> None:
    assert field.go_quote(value) == quoted


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_quoted_string_stays_on_one_line(value: str) -> None:
    quoted = field.go_quote(value)
    assert len(quoted.splitlines()) == 1
    assert quoted.startswith('"')
    assert quoted.endswith('"')


def test_a_secret_is_never_part_of_a_too_long_error() -> None:
    assert "secret" not in repr(field.too_long(SPEC, "secret", 3))


def test_one_error_stands_alone_several_in_brackets_repeats_once() -> None:
    a, b = field.required(SPEC), field.forbidden(SPEC, "no")
    assert field.aggregate([]) == ""
    assert field.aggregate([a]) == "spec: Required value"
    assert field.aggregate([a, a]) == "spec: Required value"
    assert field.aggregate([a, b, a]) == "[spec: Required value, spec: Forbidden: no]"


def test_a_refused_object_is_a_422_status_with_its_causes() -> None:
    status = field.invalid_status(
        "training.volcano.sh",
        "HyperJob",
        "llm",
        [field.required(NAME), field.not_supported(SPEC.child("mode"), "x", ["static", "auto"])],
    )
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'HyperJob.training.volcano.sh "llm" is invalid: [spec.replicatedJobs[0].name:'
        ' Required value, spec.mode: Unsupported value: "x": supported values: "static", "auto"]',
        "reason": "Invalid",
        "details": {
            "name": "llm",
            "group": "training.volcano.sh",
            "kind": "HyperJob",
            "causes": [
                {
                    "reason": "FieldValueRequired",
                    "message": "Required value",
                    "field": "spec.replicatedJobs[0].name",
                },
                {
                    "reason": "FieldValueNotSupported",
                    "message": 'Unsupported value: "x": supported values: "static", "auto"',
                    "field": "spec.mode",
                },
            ],
        },
        "code": 422,
    }


# What a real API server answered, refusal by refusal: group, kind and name; the reason of the cause
RECORDED = [
    (
        ("meta.k8s.io", "PatchOptions", ""),
        field.required(ROOT.child("fieldManager"), "is required for apply patch"),
        'PatchOptions.meta.k8s.io "" is invalid: ',
        "fieldManager: Required value: is required for apply patch",
        "FieldValueRequired",
    ),
    (
        ("", "ConfigMap", ""),
        field.required(METADATA.child("name"), "name or generateName is required"),
        'ConfigMap "" is invalid: ',
        "metadata.name: Required value: name or generateName is required",
        "FieldValueRequired",
    ),
    (
        ("conf.example.dev", "gadgets", "posted"),
        field.invalid(METADATA.child("resourceVersion"), 0, "must be specified for an update"),
        'gadgets.conf.example.dev "posted" is invalid: ',
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        "FieldValueInvalid",
    ),
]


@pytest.mark.parametrize(("named", "error", "begin", "text", "reason"), RECORDED)
def test_a_status_equals_the_recorded_one(
    named: tuple[str, str, str], error: FieldError, begin: str, text: str, reason: str
) -> None:
    status = field.invalid_status(*named, [error])
    place, _, message = text.partition(": ")
    group, kind, name = named
    known = {"group": group, "kind": kind, "name": name}
    causes = [{"reason": reason, "message": message, "field": place}]
    assert status["message"] == begin + text
    details = {key: value for key, value in known.items() if value}
    assert status["details"] == {**details, "causes": causes}
