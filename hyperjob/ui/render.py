"""Turns values into HTML: every text is escaped, and control characters are shown, not obeyed."""

import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from controller.model.wire import timestamp
from hyperjob.client.summary import Summary
from hyperjob.text import human_duration, printable

_SHORT: Final = {
    "nvidia.com/": "NVIDIA ",
    "amd.com/": "AMD ",
    "huawei.com/": "",
    "google.com/": "Google ",
    "intel.com/": "Intel ",
}
COLOURS: Final = 8


def visible(value: object) -> object:
    """Write control characters of plain text as escapes; HTML of our own stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value


def device(name: str) -> str:
    """Name an accelerator for people: `nvidia.com/gpu` is NVIDIA GPU."""
    for prefix, word in _SHORT.items():
        if name.startswith(prefix):
            kind = name.removeprefix(prefix)
            return word + (kind.upper() if kind in ("gpu", "npu", "tpu") else kind)
    return name


def hue(number: int) -> str:
    """Return the CSS class of a queue's colour; beyond the palette each has a pattern."""
    if number < 0:
        return "q-none"
    return f"q-{number % COLOURS}" + (f" q-p{number // COLOURS % 3}" if number >= COLOURS else "")


def ago(time: object) -> Markup:
    """Show how long ago something was; the browser keeps it up to date."""
    moment = timestamp(time) if not isinstance(time, datetime) else time
    if moment is None:
        return Markup("<span class=dim>&ndash;</span>")
    text = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    age = human_duration((datetime.now(UTC) - moment).total_seconds())
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(text, age)


def clock(time: object) -> str:
    """Show a time of day in UTC, with its date."""
    moment = timestamp(time) if not isinstance(time, datetime) else time
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def expected(summary: Summary) -> str:
    """Say when a HyperJob is expected to start; empty where no estimates support a time."""
    start = summary.expected_start
    if start is None:
        return ""
    return start.words(datetime.now(UTC), namespace=summary.namespace).capitalize()


def mark(html: str) -> str:
    """Return a short value that differs for different HTML."""
    return hashlib.blake2b(html.encode(), digest_size=9).hexdigest()


@cache
def environment() -> Environment:
    """Return the templates."""
    made = Environment(
        loader=PackageLoader("hyperjob.ui"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"device": device, "hue": hue, "ago": ago, "clock": clock, "expected": expected}
    made.globals |= {"version": static_version}
    return made


def render(template: str, **values: Any) -> Markup:  # noqa: ANN401 - what the template shows
    """Fill a template."""
    return Markup(environment().get_template(template).render(**values))  # noqa: S704 - escaped


@cache
def static(name: str) -> bytes:
    """Return a file that browsers load."""
    return (files("hyperjob.ui") / "static" / name).read_bytes()


@cache
def static_version(name: str) -> str:
    """Return a word that changes with a file, so that browsers may keep it for ever."""
    return hashlib.sha256(static(name)).hexdigest()[:12]
