"""No file has more than 500 lines, and no function more than 50 lines of statements.

The signature and the docstring of a function do not count: options and contracts may be long.
"""

import ast
from pathlib import Path

import pytest

from tests.support.rooms import ROOMS

ROOT = Path(__file__).parents[3]
MOST_LINES_OF_FILE = 500
MOST_LINES_OF_FUNCTION = 50


def long_functions(source: str) -> list[tuple[str, int]]:
    """Return name and lines of each function whose statements take too many lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node, clean=False) else node.body
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines > MOST_LINES_OF_FUNCTION:
                found.append((node.name, lines))
    return found


@pytest.mark.parametrize("room", [*ROOMS, "sandbox"])
def test_files_and_functions_of_a_room_are_short(room: str) -> None:
    files = {path.relative_to(ROOT): path.read_text() for path in (ROOT / room).rglob("*.py")}
    assert len(files) >= 5
    assert [path for path, text in files.items() if text.count("\n") > MOST_LINES_OF_FILE] == []
    long = {str(path): found for path, text in files.items() if (found := long_functions(text))}
    assert long == {}


@pytest.mark.parametrize(("statements", "found"), [(50, []), (51, [("f", 51)])])
def test_a_function_may_have_fifty_lines_beside_signature_and_docstring(
    statements: int, found: list[tuple[str, int]]
) -> None:
    body = "    pass\n" * statements
    assert (
        long_functions(f'def f(\n    a: int,\n) -> None:\n    """Do.\n\n    More.\n    """\n{body}')
        == found
    )
