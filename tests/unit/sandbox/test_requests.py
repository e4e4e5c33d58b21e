"""Reading requests: paths, media types, bodies; and the views of events."""

import pytest

from hyperjob_sandbox.apiserver.errors import ApiError
from hyperjob_sandbox.apiserver.kinds.builtin import builtin_resources
from hyperjob_sandbox.apiserver.printing import NAME_COLUMN
from hyperjob_sandbox.apiserver.state.resources import Registry, ResourceInfo
from hyperjob_sandbox.apiserver.transport.decode import read_object
from hyperjob_sandbox.apiserver.transport.requestinfo import negotiate, parse


@pytest.mark.parametrize(
    ("line", "verb", "where"),
    [
        ("GET /api/v1/namespaces", "list", ("", "", "namespaces", "", "")),
        ("GET /api/v1/namespaces/a", "get", ("", "a", "namespaces", "a", "")),
        ("PUT /api/v1/namespaces/a/finalize", "update", ("", "a", "namespaces", "a", "finalize")),
        ("GET /api/v1/namespaces/a/pods", "list", ("", "a", "pods", "", "")),
        ("GET /api/v1/namespaces/a/pods?watch=1", "watch", ("", "a", "pods", "", "")),
        ("GET /api/v1/pods?watch=false", "list", ("", "", "pods", "", "")),
        ("PATCH /apis/g.io/v2/namespaces/a/xs/b", "patch", ("g.io", "a", "xs", "b", "")),
        ("GET /apis/g.io/v2/xs/b/status", "get", ("g.io", "", "xs", "b", "status")),
        ("DELETE /apis/g.io/v2/xs", "deletecollection", ("g.io", "", "xs", "", "")),
        ("DELETE /apis/g.io/v2/xs/b", "delete", ("g.io", "", "xs", "b", "")),
        ("POST /apis/g.io/v2/namespaces/a/xs", "create", ("g.io", "a", "xs", "", "")),
        ("GET /apis/g.io/v2/xs/a%3Ab", "get", ("g.io", "", "xs", "a:b", "")),
        ("GET /apis/g.io/v2", "", ("", "", "", "", "")),
        ("GET /version", "", ("", "", "", "", "")),
    ],
)
def test_a_request_line_says_what_is_wanted(
    line: str, verb: str, where: tuple[str, str, str, str, str]
) -> None:
    info = parse(*line.split())
    found = (info.group, info.namespace, info.resource, info.name, info.subresource)
    assert (info.verb, found) == (verb, where)


PARTIAL = ",".join(
    f"application/{media};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    for media in ("vnd.kubernetes.protobuf", "json")
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "object"),
        ("*/*", "object"),
        ("application/json, */*", "object"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1beta1", "Table"),
        (
            PARTIAL,
            "PartialObjectMetadata",
        ),
        ("application/vnd.kubernetes.protobuf", "object"),
    ],
)
def test_the_first_form_that_can_be_written_wins(accept: str, form: str) -> None:
    assert negotiate(accept) == form


THING = ResourceInfo("", "v1", "things", "thing", "Thing")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "unexpected end of JSON input (<empty>)"),
        (b"[]", "cannot unmarshal array into Go value"),
        (b'"x"', "cannot unmarshal string into Go value"),
        (b"{nope", "json parse error: "),
        (b"\xff\xfe", "json parse error"),
    ],
)
def test_a_body_that_is_no_object_says_what_it_is(body: bytes, text: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_object(body, "application/json", THING)
    assert refused.value.code == 400
    assert text in refused.value.status["message"]


def test_builtin_resources_are_complete_and_unambiguous() -> None:
    registry = Registry()
    short: dict[str, str] = {}
    for info in builtin_resources():
        registry.add(info)
        assert info.storage[1] == info.plural
        if info.plural != "events":
            assert info.columns[0] is NAME_COLUMN
        for name in info.short_names:
            assert short.setdefault(name, info.plural) == info.plural
    for plural in ("pods", "secrets", "namespaces", "nodes", "services", "configmaps"):
        assert registry.find("", "v1", plural) is not None
    assert registry.find_kind("apps", "v1", "Deployment") is not None
