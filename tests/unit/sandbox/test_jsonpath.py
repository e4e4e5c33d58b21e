"""JSONPath of printer columns: what is found and what the cell shows."""

from datetime import UTC, datetime

import pytest

from hyperjob_sandbox.apiserver.printing import JSONPath, JSONPathError

OBJ = {
    "metadata": {
        "name": "one",
        "labels": {"a.b/c": "dotted"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"size": 3, "share": 0.5, "on": True, "tags": ["x", "y"], "nothing": None},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "False", "n": 1},
            {"type": "Done", "status": "True", "n": 2},
        ]
    },
}

FOUND = {
    ".metadata.name": ["one"],
    ".spec.tags": [["x", "y"]],
    ".spec.tags[*]": ["x", "y"],
    ".spec.tags[1]": ["y"],
    ".spec.tags[-2]": ["x"],
    ".spec.tags[2]": [],
    ".status.conditions[0].type": ["Ready"],
    ".spec.nope.deeper": [],
    '.status.conditions[?(@.type=="Done")].status': ["True"],
    ".status.conditions[?(@.type=='Done')].status": ["True"],
    '.status.conditions[?(@.nope=="x")].n': [],
    ".metadata.labels.a\\.b/c": ["dotted"],
}


@pytest.mark.parametrize(("path", "expected"), FOUND.items())
def test_a_path_finds(path, expected):
    assert JSONPath.compile(path).find(OBJ) == expected


CELLS = {
    (".spec.size", "integer"): 3,
    (".spec.share", "integer"): 0,
    (".spec.share", "number"): 0.5,
    (".spec.size", "number"): 3.0,
    (".spec.size", "string"): "3",
    (".spec.on", "string"): "true",
    (".spec.on", "boolean"): True,
    (".spec.size", "boolean"): None,
    (".metadata.name", "integer"): None,
    (".spec.tags", "string"): '["x","y"]',
    (".spec.nope", "string"): None,
    (".spec.nothing", "string"): "<no value>",
    (".spec.nothing", "integer"): None,
    (".metadata.creationTimestamp", "date"): "36h",
    (".metadata.name", "date"): "<invalid>",
}


@pytest.mark.parametrize(("column", "expected"), CELLS.items())
def test_a_cell_shows(column, expected):
    path, column_type = column
    now = datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert JSONPath.compile(path).cell(OBJ, column_type, now=now) == expected


REFUSED = {
    ".spec[": "cannot parse [",
    ".spec[a]": "cannot parse [a]",
    ".spec[?(@.a": "cannot parse [?(@.a",
    ".spec[?(@.n>1)]": "cannot parse [?(@.n>1)]",
    "spec": "must be a simple json path starting with .",
    "{.spec}": "must be a simple json path starting with .",
}


@pytest.mark.parametrize(("path", "message"), REFUSED.items())
def test_a_path_is_refused(path, message):
    with pytest.raises(JSONPathError) as caught:
        JSONPath.compile(path)
    assert str(caught.value) == message
