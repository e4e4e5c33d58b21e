"""CEL: what expressions give, and what the API server says of those that fail."""

import pytest

from hyperjob_sandbox.apiserver.cel import CelError, Expression

SELF = {"size": 3, "title": "abc", "nothing": None, "parts": [{"name": "a"}, {"name": "b"}]}


def run(source):
    return Expression(source, variables=("self", "oldSelf")).evaluate({"self": SELF})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("size(self.parts) < self.size", True),
        ("has(self.missing) && self.missing == 1", False),
        ("self.nothing == null", True),
        ("self.parts.exists(p, p.name == 'b')", True),
        ("self.parts.all(p, p.name != self.title)", True),
        ("self.?missing.?deeper.orValue(7)", 7),
        ("self.title.matches('^[a-c]+$')", True),
        ("self.title.upperAscii()", "ABC"),
        ("self.parts.map(p, p.name)", ["a", "b"]),
    ],
)
def test_an_expression_gives_a_value(source, value):
    assert run(source) == value


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("self.missing == 1", "no such key: missing"),
        ("self.size + self.title", "no such overload"),
        ("self.size ? true : false", "no such overload"),
        ("nobody.size", "undeclared reference to 'nobody"),
        ("self.(", "Syntax error"),
        ("quantity('1Gi').isInteger()", "undeclared reference to 'quantity'"),
        ("oldSelf.size == 1", "oldSelf"),
    ],
)
def test_an_expression_that_fails_says_why(source, text):
    with pytest.raises(CelError, match=r".*") as caught:
        run(source)
    assert text in str(caught.value)


def test_an_expression_knows_the_variables_that_it_names():
    found = Expression("self.a == oldSelf.a", variables=("self", "oldSelf", "other"))
    assert found.variables == {"self", "oldSelf"}


def test_numbers_beyond_what_cel_has_are_an_error_and_no_crash():
    with pytest.raises(CelError):
        Expression("self > 1", variables=("self",)).evaluate({"self": 2**70})
