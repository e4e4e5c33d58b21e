"""HTML and SVG from templates: the page, the simulator's page, and the tables of the SDK.

The templates escape all text, and `finalize` escapes its control characters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hyperjob_core.text import printable

Attributes = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Shape:
    """An element of an SVG: its name, attributes and text, a tooltip, and the elements in it."""

    name: str
    at: Attributes
    text: str = ""
    title: str = ""
    inside: Sequence["Shape"] = ()


def visible(value: object) -> object:
    """Return plain text with escaped control characters; Markup stays unchanged."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value


@cache
def environment(package: str = __name__) -> Environment:
    """Return the environment of a package's templates, which may import `shared.html`."""
    loaders = [PackageLoader(name) for name in dict.fromkeys((package, __name__))]
    return Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def drawing(shapes: Iterable[Shape], **attributes: str | int) -> Markup:
    """Return an SVG of shapes with attributes of its own."""
    return _shared("svg", shapes, attributes)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a table of texts."""
    return _shared("table", header, rows)


def _shared(macro: str, *values: Any) -> Markup:  # noqa: ANN401 - what the macro shows
    module = environment().get_template("shared.html").module
    return Markup(getattr(module, macro)(*values))  # noqa: S704 - the macro escapes
