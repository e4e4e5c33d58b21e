"""CEL: values, operators, macros, functions, errors; held against Google's implementation."""

from datetime import UTC, datetime

import pytest
from cel_expr_python import cel as google
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.cel import CelError, Expression
from hyperjob_sandbox.apiserver.schema.schemanode import Node

SELF = {
    "size": 3,
    "share": 0.5,
    "on": True,
    "off": False,
    "title": "abc",
    "nothing": None,
    "parts": [{"name": "a", "count": 2}, {"name": "b"}],
    "labels": {"k": "v", "l": "w"},
    "numbers": [3, 1, 2],
}


def run(source, **values):
    return Expression(source, variables=["self", *values]).evaluate({"self": SELF, **values})


def failure(source, **values):
    with pytest.raises(CelError) as caught:
        run(source, **values)
    return str(caught.value)


# What any implementation of CEL must say; each is also asked of Google's.
PORTABLE = [
    "1 + 2 * 3 - 4 / 2",
    "-7 / 2",
    "-7 % 3",
    "7 % -3",
    "1.5 * 2.0",
    "1.0 / 0.0 > 1.0",
    "'a' + 'b'",
    "[1] + [2, 3]",
    "b'a' + b'b' == b'ab'",
    "'\\n\\t\\x41\\u00e9'",
    'r"\\d+"',
    "0x1F",
    "1e3",
    "3u + 4u",
    "true && false || true",
    "!true",
    "self.on ? 1 : 2",
    "self.size == 3",
    "self.size == 3.0",
    "self.size != 'x'",
    "self.share < 1.0",
    "self.size > 2.5",
    "'a' < 'b'",
    "null == self.nothing",
    "[1, 2] == [1, 2]",
    "{'a': 1} == {'a': 1}",
    "true == (1 == 1)",
    "1 in [1, 2]",
    "'k' in self.labels",
    "'x' in self.labels",
    "self.labels['k']",
    "self.labels.k",
    "self.parts[0].name",
    "self['size']",
    "has(self.size)",
    "has(self.nope)",
    "has(self.parts[0].count)",
    "size(self.parts) + self.parts.size()",
    "size('é')",
    "'日本'.size()",
    "size(self.labels)",
    "self.parts.all(p, has(p.name))",
    "self.parts.exists(p, p.count == 2)",
    "self.parts.exists(p, p.name == 'z')",
    "self.parts.exists_one(p, p.name == 'a')",
    "self.parts.map(p, p.name)",
    "self.parts.filter(p, has(p.count)).map(p, p.count)",
    "self.numbers.map(n, n > 1, n * 2)",
    "self.numbers.filter(n, n > 1).size()",
    "self.labels.all(k, self.labels[k] != '')",
    "self.labels.exists(k, k == 'l')",
    "self.parts.map(p, self.numbers.map(n, n)).size()",
    "self.nope == 1 || true",
    "true || self.nope == 1",
    "self.nope == 1 && false",
    "[0, 1].exists(n, 1 / n == 1)",
    "[0, 1].all(n, 1 / n == 2)",
    "'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')",
    "'abc'.matches('^[a-z]+$')",
    "'abc\\n'.matches('^abc$')",
    "int('42') + int(1.9) + int(3u)",
    "double(3)",
    "double('1.5')",
    "string(3) + string(1.5) + string(true)",
    "type(1) == int",
    "type('a') == string",
    "type(1.0) != int",
    "dyn(1) == 1",
    "timestamp('2026-01-02T03:04:05Z') < timestamp('2026-01-02T03:04:06Z')",
    "timestamp('2026-01-02T03:04:05Z').getFullYear()",
    "timestamp('2026-01-02T03:04:05Z').getDayOfWeek()",
    "timestamp('2026-01-02T03:04:05Z').getHours('+02:00')",
    "timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z') == duration('24h')",
    "timestamp('2026-01-01T00:00:00Z') + duration('1h') > timestamp('2026-01-01T00:30:00Z')",
    "duration('90m') == duration('1h30m')",
    "duration('90m').getMinutes()",
    "self.size > 2 ? self.title : 'none'",
    "9223372036854775806 + 1",
    "-9223372036854775808",
    "1 / 0 == 1",
    "5 % 0 == 1",
    "9223372036854775807 + 1 == 0",
    "self.nope",
    "self.numbers[9]",
    "self.title + 1 == 'x'",
    "1 < 'a'",
    "self.size && true",
    "has(self.nope.deeper)",
    "self.parts.all(p, p.count > 0)",
]


@pytest.fixture(scope="module")
def environment():
    return google.NewEnv(variables={"self": google.Type.DYN})


def plain(value):
    """Turn a result of Google's into ours."""
    found = value.plain_value() if hasattr(value, "plain_value") else value.value()
    if isinstance(found, list | tuple):
        return [item.value() if hasattr(item, "value") else item for item in found]
    return found


@pytest.mark.parametrize("source", PORTABLE)
def test_the_same_as_googles(environment, source):
    # Google compiles with types: what cannot be is refused there, and fails here.
    try:
        result = environment.compile(source).eval(data={"self": SELF})
        expected = plain(result)
        failed = result.type() == google.Type.ERROR
    except Exception:  # noqa: BLE001 - any refusal will do
        failed, expected = True, None
    if failed:
        assert failure(source)
    else:
        found = run(source)
        assert found == expected
        assert isinstance(found, bool) == isinstance(expected, bool)


KUBERNETES = {
    "self.numbers.sum()": 6,
    "[1.5, 2.5].sum()": 4.0,
    "[].sum()": 0,
    "self.numbers.min() + self.numbers.max()": 4,
    "self.numbers.isSorted()": False,
    "['a', 'b'].isSorted()": True,
    "self.numbers.indexOf(1)": 1,
    "[1, 2, 1].lastIndexOf(1)": 2,
    "'a,b'.split(',')": ["a", "b"],
    "['a', 'b'].join('-')": "a-b",
    "'aB'.lowerAscii() + 'aB'.upperAscii()": "abAB",
    "' a '.trim()": "a",
    "'abcabc'.indexOf('c')": 2,
    "'abcabc'.lastIndexOf('c')": 5,
    "'abc'.substring(1)": "bc",
    "'abc'.substring(1, 2)": "b",
    "'abc'.charAt(1)": "b",
    "'abab'.replace('a', 'x', 1)": "xbab",
    "'a1b22'.find('[0-9]+')": "1",
    "'a1b22'.findAll('[0-9]+')": ["1", "22"],
    "sets.contains([1, 2], [2])": True,
    "sets.equivalent([1, 2, 2], [2, 1])": True,
    "sets.intersects([1], [2])": False,
    "quantity('1Gi').isGreaterThan(quantity('1G'))": True,
    "quantity('500m').compareTo(quantity('0.5'))": 0,
    "quantity('1').add(quantity('500m')).isLessThan(quantity('2'))": True,
    "isQuantity('1Zi')": False,
    "quantity('2k').asInteger()": 2000,
    "self.?size.orValue(9)": 3,
    "self.?nope.orValue(9)": 9,
    "self.?nope.deeper.hasValue()": False,
    "self.labels[?'k'].orValue('')": "v",
    "self.numbers[?9].hasValue()": False,
    "self.?size.optMap(s, s * 2).orValue(0)": 6,
    "optional.of(1).value()": 1,
    "[?optional.none(), 1].size()": 1,
    "self.numbers.all(i, n, i < 3 && n > 0)": True,
    "self.labels.transformList(k, v, k + v)": ["kv", "lw"],
    "self.labels.transformMap(k, v, v + '!')": {"k": "v!", "l": "w!"},
}


@pytest.mark.parametrize(("source", "expected"), KUBERNETES.items())
def test_what_kubernetes_adds(source, expected):
    assert run(source) == expected


FAILURES = {
    "self.nope": "no such key: nope",
    "self.numbers[9]": "index out of bounds: 9",
    "1 / 0": "division by zero",
    "1 % 0": "modulus by zero",
    "9223372036854775807 + 1": "integer overflow",
    "-(-9223372036854775807 - 1)": "integer overflow",
    "self.size + 'x'": "no such overload",
    "self.size.x": "no such overload",
    "size(1)": "no such overload",
    "'a'.startsWith(1)": "no such overload",
    "1 && true": "no such overload",
    "int('x')": 'strconv.ParseInt: parsing "x": invalid syntax',
    "optional.none().value()": "optional.none() dereference",
    "'a'.matches('(')": "error parsing regexp: missing ), unterminated subpattern at position 0",
}


@pytest.mark.parametrize(("source", "message"), FAILURES.items())
def test_a_failure_says_why(source, message):
    assert failure(source) == message


REFUSED = {
    "foo(self)": (
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n"
        " | foo(self)\n | ^"
    ),
    "self.size > x": (
        "compilation failed: ERROR: <input>:1:13: undeclared reference to 'x' (in container '')\n"
        " | self.size > x\n | ............^"
    ),
    "self.parts.all(p, q)": (
        "compilation failed: ERROR: <input>:1:19: undeclared reference to 'q' (in container '')\n"
        " | self.parts.all(p, q)\n | ..................^"
    ),
    "url('x')": (
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'url' (in container '')\n"
        " | url('x')\n | ^"
    ),
    "self.size >": (
        "compilation failed: ERROR: <input>:1:12: Syntax error: mismatched input '<EOF>'\n"
        " | self.size >\n | ...........^"
    ),
    "self # 1": (
        "compilation failed: ERROR: <input>:1:6: Syntax error: token recognition error at: '#'\n"
        " | self # 1\n | .....^"
    ),
    "has(self)": (
        "compilation failed: ERROR: <input>:1:1: invalid argument to has() macro\n"
        " | has(self)\n | ^"
    ),
    "namespace": (
        "compilation failed: ERROR: <input>:1:1: reserved identifier: namespace\n | namespace\n | ^"
    ),
}


@pytest.mark.parametrize(("source", "message"), REFUSED.items())
def test_what_cannot_be_known_is_refused_before_it_runs(source, message):
    with pytest.raises(CelError) as caught:
        Expression(source, variables=["self"])
    assert str(caught.value) == message


SCHEMA = Node.build(
    {
        "type": "object",
        "properties": {
            "share": {"type": "number"},
            "shares": {"type": "array", "items": {"type": "number"}},
            "when": {"type": "string", "format": "date-time"},
            "wait": {"type": "string", "format": "duration"},
            "data": {"type": "string", "format": "byte"},
            "namespace": {"type": "string"},
            "a-b.c/d": {"type": "integer"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "parts": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": {"type": "string"}}},
            },
        },
    },
    root=True,
)
TYPED = {
    "share": 1,
    "shares": [1, 2.5],
    "when": "2026-01-01T00:00:00Z",
    "wait": "1h",
    "data": "aGk=",
    "namespace": "n",
    "a-b.c/d": 1,
    "free": {"x": 1},
    "parts": [{"name": "a"}],
    "metadata": {"name": "m"},
}


def typed(source):
    expression = Expression(source, variables=["self"], schemas={"self": SCHEMA})
    return expression.evaluate({"self": TYPED})


BY_SCHEMA = {
    "self.share + 0.5": 1.5,
    "self.shares.sum()": 3.5,
    "self.when < timestamp('2027-01-01T00:00:00Z')": True,
    "self.wait > duration('1m')": True,
    "self.data == b'hi'": True,
    "self.__namespace__": "n",
    "self.namespace": "n",
    "self.a__dash__b__dot__c__slash__d": 1,
    "self.free.x": 1,
    "self.metadata.name": "m",
    "self.parts.all(p, p.name == 'a')": True,
}


@pytest.mark.parametrize(("source", "expected"), BY_SCHEMA.items())
def test_a_schema_gives_types_and_names(source, expected):
    assert typed(source) == expected


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ("self.nope == 1", "nope"),
        ("has(self.nope)", "nope"),
        ("self.parts.all(p, p.nope)", "nope"),
        ("self.parts[0].nope", "nope"),
        ("self.metadata.labels", "labels"),
    ],
)
def test_a_field_that_the_schema_lacks_is_refused(source, field):
    with pytest.raises(CelError, match=f"undefined field '{field}'"):
        typed(source)


def test_variables_that_are_named_are_known():
    expression = Expression("oldSelf.x == self.x", variables=["self", "oldSelf"])
    assert expression.variables == {"self", "oldSelf"}
    assert Expression("1 == 1", variables=["self"]).variables == frozenset()


def test_a_macro_variable_hides_and_gives_back():
    assert run("[1].map(self, self + 1)[0] == 2 && self.size == 3")
    assert run("[[1, 2], [3]].map(x, x.map(x, x * 2))") == [[2, 4], [6]]


def test_loops_are_bounded():
    many = list(range(1100))
    message = failure("many.all(a, many.all(b, a + b >= 0))", many=many)
    assert message == "operation cancelled: actual cost limit exceeded"


def test_deep_nesting_is_refused():
    with pytest.raises(CelError, match="recursion limit"):
        Expression("(" * 200 + "1" + ")" * 200, variables=[])
    with pytest.raises(CelError, match="recursion limit"):
        Expression("+".join(["1"] * 2000), variables=[])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(json_values, json_values)
def test_equality_is_googles(environment, a, b):
    expected = environment.compile("self.a == self.b").eval(data={"self": {"a": a, "b": b}})
    assert run("x == y", x=a, y=b) is expected.value()


@given(st.text(max_size=20))
def test_any_text_compiles_or_is_refused(source):
    try:
        Expression(source, variables=["self"])
    except CelError as error:
        assert str(error).startswith("compilation failed: ")  # noqa: PT017


@given(json_values)
def test_evaluating_any_value_gives_a_value_or_a_failure(value):
    for source in ("x.a.b", "x[0]", "x.all(i, i == 1)", "size(x) > 1", "x + x", "x < x", "-x"):
        expression = Expression(source, variables=["x"])
        try:
            expression.evaluate({"x": value})
        except CelError as error:
            assert str(error)  # noqa: PT017


def test_times_are_compared_as_instants():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert run("t == timestamp('2026-01-01T01:00:00+01:00')", t=now)
