"""Turn values into HTML, with all text and all control characters escaped."""

import hashlib
import re
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hyperjob.client.durations import expected_words
from hyperjob.client.summary import Summary, pods_text
from hyperjob.client.training import goodput_of, sizes_text, straggler_words
from hyperjob_core.api.wire import timestamp
from hyperjob_core.text import human_duration, printable, shortened

_SHORT: Final = {
    "nvidia.com/": "NVIDIA ",
    "amd.com/": "AMD ",
    "huawei.com/": "",
    "google.com/": "Google ",
    "intel.com/": "Intel ",
}
COLOURS: Final = 8
_AGE: Final = re.compile(r">[^<>]*</time>")


def device(name: str) -> str:
    """Return the display name of an accelerator: NVIDIA GPU for `nvidia.com/gpu`."""
    for prefix, word in _SHORT.items():
        if name.startswith(prefix):
            kind = name.removeprefix(prefix)
            return word + (kind.upper() if kind in ("gpu", "npu", "tpu") else kind)
    return name


def hue(number: int) -> str:
    """Return the CSS class of a queue's colour; colours beyond the palette have a pattern."""
    if number < 0:
        return "q-none"
    return f"q-{number % COLOURS}" + (f" q-p{number // COLOURS % 3}" if number >= COLOURS else "")


def ago(time: object) -> Markup:
    """Return the age of a time as HTML, which the browser updates."""
    moment = timestamp(time) if not isinstance(time, datetime) else time
    if moment is None:
        return Markup("<span class=dim>&ndash;</span>")
    text = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    age = human_duration((datetime.now(UTC) - moment).total_seconds())
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(text, age)


def clock(time: object) -> str:
    """Return date and time of day in UTC."""
    moment = timestamp(time) if not isinstance(time, datetime) else time
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def expected(summary: Summary) -> str:
    """Return the expected start of a HyperJob as text; empty without an estimate."""
    start = summary.expected_start
    if start is None:
        return ""
    return expected_words(start, datetime.now(UTC), namespace=summary.namespace).capitalize()


def goodput(summary: Summary) -> str:
    """Return the goodput of a HyperJob in percent; empty without an account of its time."""
    found = goodput_of(summary.goodput, summary.training, datetime.now(UTC))
    return "" if found is None else found.percent


def by_size(summary: Summary) -> str:
    """Return time and goodput of a HyperJob at each size as text; empty without two sizes."""
    now = datetime.now(UTC)
    return sizes_text(summary.speeds, summary.goodput, summary.training, now)


def mark(text: str) -> str:
    """Return a short hash of HTML without the ages in it, which the browser updates."""
    still = _AGE.sub("></time>", text)
    return hashlib.blake2b(still.encode(), digest_size=9).hexdigest()


def _visible(value: object) -> object:
    """Return plain text with escaped control characters; Markup stays unchanged."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value


@cache
def environment() -> Environment:
    """Return the environment of the templates."""
    made = Environment(
        loader=PackageLoader("hyperjob_page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    offered = (
        device,
        hue,
        ago,
        clock,
        expected,
        goodput,
        by_size,
        pods_text,
        shortened,
        straggler_words,
    )
    made.filters |= {each.__name__: each for each in offered}
    made.globals |= {"version": static_version}
    return made


def render(template: str, **values: Any) -> str:  # noqa: ANN401 - what the template shows
    """Fill a template."""
    return environment().get_template(template).render(**values)


@cache
def static(name: str) -> bytes:
    """Return a file that browsers load."""
    return (files("hyperjob_page") / "static" / name).read_bytes()


@cache
def static_version(name: str) -> str:
    """Return a hash of a file for its address: browsers may cache the file without a limit."""
    return hashlib.sha256(static(name)).hexdigest()[:12]
