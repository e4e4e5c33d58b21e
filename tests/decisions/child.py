"""Decide all cases with the code of one tree: `child.py TREE ENTRY SECTION...`.

It writes a line of JSON for each case: its section, its title and its rows. The cases are those
beside this file, whatever the tree has; only the code that decides is the tree's.
"""

import importlib.util
import json
import sys
import types
from pathlib import Path


def main(tree: str, entry: str, *sections: str) -> None:
    tests = types.ModuleType("tests")
    tests.__path__ = [str(Path(__file__).parents[1])]
    sys.modules["tests"] = tests
    spec = importlib.util.spec_from_file_location("entry", entry)
    assert spec is not None
    assert spec.loader is not None
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    from tests.decisions.sections import SECTIONS

    for name in sections:
        for title, rows in SECTIONS[name](code):
            print(json.dumps([name, title, rows]), flush=True)
    for name, module in sys.modules.items():
        found = getattr(module, "__file__", None) or tree
        if name.startswith("hyperjob") and not Path(found).is_relative_to(tree):
            sys.exit(f"{name} is not of {tree}: {found}")


if __name__ == "__main__":
    main(*sys.argv[1:])
