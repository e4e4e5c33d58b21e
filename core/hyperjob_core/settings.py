"""The settings of a process: from flags, else environment variables, else a file, else defaults.

One table describes each setting for all sources. A wrong or unknown setting is a usage error with
its source.
"""

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

import hyperjob_core
from hyperjob_core.hints import nearest

ENVIRONMENT_PREFIX: Final = "HYPERJOB_"
CONFIG: Final = "config"

_NULL: Final = "tag:yaml.org,2002:null"
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}
_EPILOG: Final = (
    "Each setting is taken from its flag, else from its environment variable (in brackets above),"
    " else from the YAML file that --config names, where it is a line such as"
    " `log-level: debug`, else it is the default."
)

Options = TypeVar("Options")


class SettingError(Exception):
    """A setting is invalid; the text has its source and the error."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting; `read` parses it or raises ValueError, `show` prints a default as typed."""

    help: str
    read: Callable[[str], object] = str
    choices: tuple[str, ...] | None = None
    metavar: str | None = None
    show: Callable[[Any], str] = str


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
    environment: Mapping[str, str] | None = None,
) -> Options:
    """Return a dataclass with the settings; usage errors end the process with code 2."""
    environment = os.environ if environment is None else environment
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type] # a dataclass
    parser = _parser(known, settings, prog=prog, description=description)
    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_near(unknown[0], known)}")
    given = vars(parsed)
    file = given.pop(CONFIG, None) or environment.get(variable_of(CONFIG))
    try:
        values = _from_file(file, known, settings) if file else {}
        values |= _from_environment(environment, known, settings)
        values |= given
        _require(known, values)
        return kind(**values)
    except (SettingError, ValueError) as error:
        parser.error(str(error))


def flag_of(name: str) -> str:
    """Return the flag of a setting."""
    return f"--{_key_of(name)}"


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return ENVIRONMENT_PREFIX + name.upper()


def _near(argument: str, known: Mapping[str, "Field[Any]"]) -> str:
    """Return a suggestion with the most similar flag; empty if no flag is similar."""
    flags = [flag_of(CONFIG), *map(flag_of, known)]
    flags += [f"--no-{_key_of(name)}" for name in known if isinstance(known[name].default, bool)]
    found = nearest(argument.partition("=")[0], flags)
    return f"; did you mean {found!r}?" if found else "; --help lists them"


def _key_of(name: str) -> str:
    return name.replace("_", "-")


def _require(known: Mapping[str, "Field[Any]"], values: Mapping[str, object]) -> None:
    """Raise SettingError for settings without a value and without a default."""
    required = [name for name, field in known.items() if field.default is MISSING]
    missing = [flag_of(name) for name in required if name not in values]
    if missing:
        raise SettingError(f"the following arguments are required: {', '.join(missing)}")


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
        epilog=_EPILOG,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"hyperjob {hyperjob_core.__version__}"
    )
    parser.add_argument(
        flag_of(CONFIG),
        help=f"YAML file with settings [{variable_of(CONFIG)}]",
        metavar="FILE",
    )
    for name, field in known.items():
        setting = settings[name]
        text = f"{setting.help} [{variable_of(name)}]{_default(field, setting)}"
        if isinstance(field.default, bool):
            parser.add_argument(flag_of(name), help=text, action=argparse.BooleanOptionalAction)
            continue
        choices = f"{{{','.join(setting.choices)}}}" if setting.choices else None
        parser.add_argument(
            flag_of(name),
            help=text,
            type=_reader(field, setting),
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


def _reader(field: "Field[Any]", setting: Setting) -> Callable[[str], object]:
    """Return a parser whose ValueError argparse prints with its text."""

    def convert(text: str) -> object:
        try:
            return _read(field, setting, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _read(field: "Field[Any]", setting: Setting, text: str) -> object:
    """Return the value of a setting; raises ValueError for a text that it does not accept."""
    if isinstance(field.default, bool):
        if text.lower() not in _TRUTH:
            raise ValueError(f"{text!r} is neither true nor false")
        return _TRUTH[text.lower()]
    if setting.choices and text not in setting.choices:
        raise ValueError(f"{text!r} is none of {', '.join(setting.choices)}")
    return setting.read(text)


def _from_environment(
    environment: Mapping[str, str],
    known: Mapping[str, "Field[Any]"],
    settings: Mapping[str, Setting],
) -> dict[str, object]:
    """Return the settings that environment variables have; raises SettingError."""
    values: dict[str, object] = {}
    for name, field in known.items():
        text = environment.get(variable_of(name))
        if text is None:
            continue
        try:
            values[name] = _read(field, settings[name], text)
        except ValueError as error:
            raise SettingError(f"{variable_of(name)}: {error}") from None
    return values


def _from_file(
    file: str, known: Mapping[str, "Field[Any]"], settings: Mapping[str, Setting]
) -> dict[str, object]:
    """Return the settings of a YAML file; raises SettingError with the file and the setting."""
    names = {_key_of(name): name for name in known}
    values: dict[str, object] = {}
    for key, text in _lines(file):
        name = names.get(key)
        if name is None:
            near = nearest(key, names)
            hint = f"; did you mean {near!r}?" if near else "; --help lists them"
            raise SettingError(f"{file}: unknown setting {key!r}{hint}")
        if name in values:
            raise SettingError(f"{file}: {key}: is given twice")
        try:
            values[name] = _read(known[name], settings[name], text)
        except ValueError as error:
            raise SettingError(f"{file}: {key}: {error}") from None
    return values


def _lines(file: str) -> list[tuple[str, str]]:
    """Return the keys and values of a flat YAML mapping, as they are written."""
    try:
        root = yaml.compose(Path(file).read_bytes(), Loader=yaml.SafeLoader)
    except OSError as error:
        raise SettingError(f"{file}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise SettingError(f"{file}: is no YAML document: {' '.join(str(error).split())}") from None
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise SettingError(f"{file}: must have one `setting: value` on each line")
    found: list[tuple[str, str]] = []
    for key, value in root.value:
        if not isinstance(key, yaml.ScalarNode):
            raise SettingError(f"{file}: line {key.start_mark.line + 1}: a setting has no name")
        if not isinstance(value, yaml.ScalarNode) or value.tag == _NULL:
            raise SettingError(f"{file}: {key.value}: must have one value")
        found.append((key.value, value.value))
    return found
