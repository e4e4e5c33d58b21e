"""Every parser of foreign text takes time in proportion to the text.

Patterns are proved by counting in test_linear_patterns; here whole functions are timed against
themselves, with texts four times as long. A quadratic parser takes sixteen times as long.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from hyperjob.client.durations import parse_duration
from hyperjob_core.api import formats
from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.field import ROOT, go_quote, invalid
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.plugins import Kind, fill, placeholders_of, read_arguments
from hyperjob_core.api.quantity import Quantity
from hyperjob_core.api.wire import natural, timestamp
from hyperjob_core.telemetry.logs import _hide
from hyperjob_core.yamltext import FLOAT, INTEGER
from hyperjob_engine.plugins.hook import generation_of
from hyperjob_engine.resources import parse_resources
from hyperjob_rules.patch import escape
from hyperjob_rules.validation.arguments import validate_arguments
from hyperjob_rules.validation.durations import validate_duration
from hyperjob_rules.validation.forms import check, validate_annotations, validate_labels
from hyperjob_rules.validation.rules import Report
from hyperjob_webhook.review import cut_warnings

FLAGS = {"port": Kind.PORT, "name-pattern": Kind.HOST, "worker": Kind.TASK, "count": Kind.NUMBER}
FORMS = (
    formats.dns1123_label,
    formats.dns1123_subdomain,
    formats.dns1035_label,
    formats.qualified_name,
    formats.label_value,
    formats.port_name,
    formats.relaxed_env_var_name,
    formats.config_map_key,
)
PARSERS: dict[str, Callable[[str], Any]] = {
    "quantity": Quantity.parse,
    "duration": nanoseconds,
    "duration of the command line": parse_duration,
    "duration in a HyperJob": lambda text: validate_duration(text, ROOT, Report()),
    "resources": lambda text: parse_resources({text: text}),
    "natural number": natural,
    "time": timestamp,
    "mark of a world": generation_of,
    "arguments": lambda text: list(read_arguments([text] * 3, FLAGS)),
    "argument of a plugin": lambda text: validate_arguments(
        "x", [f"--port={text}", f"--name-pattern={text}", text], FLAGS, ROOT, Report()
    ),
    "placeholders": placeholders_of,
    "filling of placeholders": lambda text: fill(text, {"pod": "x"}),
    "error": lambda text: str(invalid(ROOT.child(text), text, text)),
    "quoting": go_quote,
    "pointer": escape,
    "warning": lambda text: cut_warnings([text]),
    "name of a binding": binding_name,
    "integer in a manifest": INTEGER.match,
    "number in a manifest": FLOAT.match,
    "log line": _hide,
    "labels": lambda text: validate_labels({text: text}, ROOT, Report()),
    "annotations": lambda text: validate_annotations({text: text}, ROOT, Report()),
} | {
    f"form {form.__name__}": lambda text, form=form: check(form, text, ROOT, Report())
    for form in FORMS
}
PUMPS = {
    "zeros": ("", "0", "e1.5"), "digits": ("", "9", "x"), "fraction": ("0.", "0", "e"),
    "letters": ("a", "a", "!"), "dots": ("", "a.", "!"), "hyphens": ("a", "-", "!"),
    "minutes": ("", "1m", "x"), "slashes": ("", "a/", ""), "braces": ("", "{", "}"),
    "names in braces": ("", "{x}", ""), "arguments": ("--", "-=", ""),
    "spaces": ("bearer ", " ", "!"),
    "secrets": ("", "authorization ", ""), "keys": ("", "-----BEGIN PRIVATE KEY", ""),
    "escapes": ("", "\x1b", "\n"), "commas": ("", "1,", ""), "times": ("2026-01-01T", "0", "Z"),
}  # fmt: skip
SIZE = 8_000


def seconds(parser: Callable[[str], Any], text: str) -> float:
    """Return the least time of three, in processor seconds of this thread."""
    taken = []
    for _ in range(3):
        started = time.thread_time()
        with suppress(ValueError):
            parser(text)
        taken.append(time.thread_time() - started)
    return min(taken)


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_takes_time_in_proportion_to_its_text(name: str) -> None:
    parser, slow = PARSERS[name], []
    for form, (start, pump, end) in PUMPS.items():
        short, long = (start + pump * (n // len(pump)) + end for n in (SIZE, 4 * SIZE))
        # What takes no measurable time at the larger size is not quadratic.
        if seconds(parser, long) < 0.002:
            continue
        ratios = [seconds(parser, long) / max(seconds(parser, short), 1e-6) for _ in range(3)]
        if min(ratios) > 8:
            slow.append((form, ratios))
    assert not slow
