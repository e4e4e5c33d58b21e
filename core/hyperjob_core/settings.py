"""The settings of a process, which are its flags: one table describes each of them.

A wrong or unknown flag is a usage error with its name.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

import hyperjob_core
from hyperjob_core.text import nearest

Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting; `read` parses it or raises ValueError, `show` prints a default as typed."""

    help: str
    read: Callable[[str], object] = str
    choices: tuple[str, ...] | None = None
    metavar: str | None = None
    show: Callable[[Any], str] = str


COMMON: Final[Mapping[str, Setting]] = {
    "metrics_cert_dir": Setting(
        "folder with tls.crt and tls.key: /metrics by HTTPS, only for clients whose token the API"
        " server of KUBECONFIG, else of the pod's account, accepts and allows to get /metrics;"
        " default: plain HTTP for all clients",
        Path,
        metavar="DIRECTORY",
    ),
    "log_format": Setting("format of the log", choices=("text", "json")),
    "log_level": Setting("lowest level in the log", choices=("debug", "info", "warning", "error")),
}
"""The settings that processes have in common."""


def whole_number(text: str) -> int:
    """Return a whole number of at least 0; ValueError for another text."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"expected a whole number, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Return a number of seconds; ValueError for another text, and for one without an end."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"expected a number of seconds, got {text!r}")
    return found


def read_options(
    kind: type[Options],
    settings: Mapping[str, Setting],
    *,
    prog: str,
    description: str,
    arguments: Sequence[str] | None = None,
) -> Options:
    """Return a dataclass with the settings; usage errors end the process with code 2."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type] # a dataclass
    parser = _parser(known, settings, prog=prog, description=description)
    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_near(unknown[0], known)}")
    given = vars(parsed)
    required = [name for name, field in known.items() if field.default is MISSING]
    if missing := [flag_of(name) for name in required if name not in given]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    try:
        return kind(**given)
    except ValueError as error:
        parser.error(str(error))


def flag_of(name: str) -> str:
    """Return the flag of a setting."""
    return f"--{name.replace('_', '-')}"


def _near(argument: str, known: Mapping[str, "Field[Any]"]) -> str:
    """Return a suggestion with the most similar flag; empty if no flag is similar."""
    switches = (name for name in known if isinstance(known[name].default, bool))
    flags = [*map(flag_of, known), *(flag_of(f"no_{name}") for name in switches)]
    found = nearest(argument.partition("=")[0], flags)
    return f"; did you mean {found!r}?" if found else "; --help lists them"


def _parser(
    known: Mapping[str, "Field[Any]"],
    settings: Mapping[str, Setting],
    *,
    prog: str,
    description: str,
) -> argparse.ArgumentParser:
    """Return the parser of the flags; absent flags are absent in its result."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=description,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"hyperjob {hyperjob_core.__version__}"
    )
    for name, field in known.items():
        setting = settings[name]
        text = f"{setting.help}{_default(field, setting)}"
        if isinstance(field.default, bool):
            parser.add_argument(flag_of(name), help=text, action=argparse.BooleanOptionalAction)
            continue
        choices = f"{{{','.join(setting.choices)}}}" if setting.choices else None
        parser.add_argument(
            flag_of(name),
            help=text,
            type=_reader(setting),
            metavar=setting.metavar or choices,
        )
    return parser


def _default(field: "Field[Any]", setting: Setting) -> str:
    """Return the default for --help, as users type it."""
    if field.default is MISSING:
        return " (required)"
    if field.default is None:
        return ""
    shown = setting.show(field.default)
    if isinstance(field.default, bool):
        shown = shown.lower()
    return f" (default: {shown or 'empty'})".replace("%", "%%")


def _reader(setting: Setting) -> Callable[[str], object]:
    """Return a parser whose ValueError argparse prints with its text."""

    def convert(text: str) -> object:
        if setting.choices and text not in setting.choices:
            why = f"{text!r} is none of {', '.join(setting.choices)}"
            raise argparse.ArgumentTypeError(why)
        try:
            return setting.read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


class Stage(StrEnum):
    """How settled a feature is: an alpha feature is off by default, a beta feature on."""

    ALPHA = "Alpha"
    BETA = "Beta"


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature with a gate; `since` is the release that gave it this stage."""

    stage: Stage
    since: str
    what: str


FEATURES: Final = {
    "ExternalSplitter": Feature(
        Stage.ALPHA, "0.1", "an HTTP service splits HyperJobs: `--splitter-url`"
    ),
    "TrainJobs": Feature(
        Stage.BETA, "0.1", "the controller makes HyperJobs of Kubeflow's TrainJobs"
    ),
}
DEFAULT_GATES: Final = frozenset(
    name for name, feature in FEATURES.items() if feature.stage is Stage.BETA
)


def read_gates(text: str) -> frozenset[str]:
    """Return the features that are on after `Name=true,Other=false`; ValueError otherwise."""
    on = set(DEFAULT_GATES)
    for gate in filter(None, text.split(",")):
        name, _, value = gate.partition("=")
        if name not in FEATURES:
            near = nearest(name, FEATURES)
            hint = f"did you mean {near!r}?" if near else f"the gates are {', '.join(FEATURES)}"
            raise ValueError(f"there is no feature gate {name!r}; {hint}")
        if value not in ("true", "false"):
            raise ValueError(f"expected {name}=true or {name}=false, got {gate!r}")
        (on.add if value == "true" else on.discard)(name)
    return frozenset(on)


def show_gates(on: frozenset[str]) -> str:
    """Return all gates as `read_gates` reads them."""
    return ",".join(f"{name}={str(name in on).lower()}" for name in FEATURES)
