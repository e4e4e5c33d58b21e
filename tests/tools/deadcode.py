"""Code of the product that nothing but tests uses: `python -m tests.tools.deadcode`.

Vulture looks at the product and at the generators of its pages. It does not know what Jinja reads
in a template, what the table of the status reads of a type, and the few names below
that libraries read.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from vulture import Vulture

from hyperjob_core.api import choices, status, stops, training
from tests.support.rooms import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = (
    *PACKAGES.values(),
    "sandbox/hyperjob_sandbox",
    "sandbox/hyperjob_sandbox_cli",
    "docs/generators",
)
COMMANDS = ["@click.command", "@click.group", "@*.command", "@*.group"]
ALLOWED = {
    # read by libraries
    "_clock_resolution": "asyncio's event loop",
    "_missing_": "enum",
    "__signature__": "inspect",
    "_repr_html_": "Jupyter",
    "_repr_png_": "Jupyter",
    "Axes": "annotations",
    "ProgressCallback": "programs of users",
    "compress_type": "zipfile",
    "external_attr": "zipfile",
    "filters": "Jinja",
    "format_commands": "click",
    "formatter_class": "argparse",
    "globals": "Jinja",
    "ignore_aliases": "PyYAML",
    "kubectl_complete": "the script of pyproject.toml",
    "max_size": "asyncio's SSLProtocol",
    "model_config": "pydantic",
    "num_tickets": "ssl",
    "on_exception": "Lightning",
    "on_save": "transformers",
    "on_step_end": "transformers",
    "on_train_batch_end": "Lightning",
    "on_validation_start": "Lightning",
    "on_broken_pipe": "rich",
    "state_key": "Lightning",
    "writelines": "of a stream",
    # read by people and tests
    "serial": "of a certificate, to tell one from the next",
}


def main() -> None:
    """Print what is unused, and every allowed name that is used by now; fail on either."""
    vulture = Vulture(ignore_decorators=COMMANDS)
    vulture.scavenge([ROOT / folder for folder in PRODUCT])
    vulture.used_names.update(_wire_names(), _template_names())
    unused = vulture.get_unused_code(min_confidence=60)
    problems = [
        f"{each.filename.relative_to(ROOT)}:{each.first_lineno}: unused {each.typ} {each.name}"
        for each in unused
        if each.name not in ALLOWED
    ]
    stale = sorted(set(ALLOWED) - {each.name for each in unused})
    problems += [f"tests/tools/deadcode.py: {name} is used: take it off the list" for name in stale]
    sys.exit("\n".join(problems) or None)


def _wire_names() -> Iterator[str]:
    """Yield the fields and values of the wire types, which the definition and clients read."""
    for module in (choices, status, stops, training):
        for kind in vars(module).values():
            yield from getattr(kind, "__dataclass_fields__", ())
            yield from getattr(kind, "__members__", ())


def _template_names() -> Iterator[str]:
    for package in PACKAGES.values():
        for template in sorted(package.rglob("templates/**/*.html")):
            for code in re.findall(r"\{[{%].*?[%}]\}", template.read_text(), re.DOTALL):
                yield from re.findall(r"\w+", code)


if __name__ == "__main__":
    main()
