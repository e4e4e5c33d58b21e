"""A mutant is one small change of the text that still parses and means something else."""

import pytest

from tests.tools.operators import lines_at_import, mutants

CHANGES = {
    "a comparison loses or takes its limit": ("x = a < b", {"x = a <= b"}),
    "an identity is denied": ("x = (a := f()) is None", {"x = (a := f()) is not None"}),
    "all becomes any": ("x = all(a)", {"x = any(a)"}),
    "a number grows": ("x = 3", {"x = 4"}),
    "a flag turns": ("x = True", {"x = False"}),
    "a sum becomes a difference": ("x = (a) + b", {"x = (a) - b"}),
    "texts are joined as they were": ("x = 'a' + b", set()),
    "a condition is denied": (
        "if a:\n    f()",
        {"if not (a):\n    f()", "if a:\n    pass"},
    ),
    "and becomes or, and each side is dropped": (
        "x = a and b",
        {"x = ((a) or (b))", "x = ((a))", "x = ((b))"},
    ),
    "a result is lost": ("def f():\n    return a", {"def f():\n    return None"}),
    "a filter lets everything pass": ("x = [a for a in b if a]", {"x = [a for a in b if True]"}),
    "parameters, annotations, errors and assertions stay": (
        "def f(a: x[1] = 2) -> y[3]:\n    assert a == 1\n    raise E(4)",
        set(),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_operator_changes_one_place(name: str) -> None:
    before, after = CHANGES[name]
    source = before.encode()
    assert {each.apply(source).decode() for each in mutants("f.py", source)} == after


def test_lines_outside_of_functions_run_when_a_module_is_imported() -> None:
    source = b"LIMIT = 5\n\n\ndef f(a=1):\n    return a\n\n\nclass C:\n    size = 3\n"
    assert lines_at_import(source) & {1, 4, 5, 8, 9} == {1, 4, 8, 9}


def test_a_returned_truth_value_becomes_the_other_one_alone() -> None:
    changed = {
        mutant.apply(b"def f():\n    return False")
        for mutant in mutants("f", b"def f():\n    return False")
    }
    assert changed == {b"def f():\n    return True"}
