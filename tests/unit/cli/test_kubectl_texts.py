"""`hyperjob lint` reads a manifest as `kubectl apply` and the API server do."""

import pytest
from click.testing import CliRunner

from hyperjob.cli.lint import lint
from hyperjob.cli.lint.documents import parse
from hyperjob_core.api.defaults import stored
from hyperjob_core.yamltext import to_yaml
from tests.support.kubectltexts import Row, rows

ROWS = rows()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_lint_refuses_what_kubectl_or_the_api_server_refuses(row: Row):
    result = CliRunner().invoke(lint, ["-"], input=row.document())
    assert (result.exit_code != 0) == row.refused, result.output


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_stored], ids=str)
def test_a_value_is_read_as_the_api_server_stores_it(row: Row):
    [document] = parse(row.document())
    read, defaulted = row.field(document.content), row.field(stored(document.content))
    assert row.stored in (read, defaulted)


def test_a_key_that_is_there_twice_is_a_warning():
    text = Row("meta", "labels: {a: b, a: c}").document()
    result = CliRunner().invoke(lint, ["-"], input=text)
    assert '<stdin>:5: warning: key "a" is there twice: kubectl takes the last one' in result.output


def test_lines_go_on_in_a_stream_of_json():
    one = '{"apiVersion": "training.volcano.sh/v1alpha1",\n "kind": "HyperJob"}\n'
    found = list(parse(one * 3))
    assert [document.line for document in found] == [1, 3, 5]
    assert [document.line_of("kind") for document in found] == [2, 4, 6]


@pytest.mark.parametrize(("letters", "fits"), [(261_000, True), (262_000, False)])
def test_what_kubectl_apply_cannot_store_is_a_warning(letters: int, fits: bool):
    text = Row("container", f"args: [{'x' * letters}]").document()
    result = CliRunner().invoke(lint, ["-"], input=text)
    assert result.exit_code == 0
    assert ("kubectl apply cannot store this object" not in result.output) == fits
    assert ("use kubectl apply --server-side" not in result.output) == fits


@pytest.mark.parametrize("text", ["y", "N", "on", "null", "1", "1e3", ".inf", "0o7", "", "a"])
def test_what_a_command_prints_as_yaml_is_read_back_as_it_is(text: str):
    [document] = parse(to_yaml({text: text, "list": [text]}))
    assert document.content == {text: text, "list": [text]}
