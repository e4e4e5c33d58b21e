"""Plain values of YAML as kubectl reads them, and objects as YAML that kubectl reads back."""

import re
from typing import Final

import yaml

YAML_TAG: Final = "tag:yaml.org,2002:"
INTEGER: Final = re.compile(r"\A[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)\Z")
FLOAT: Final = re.compile(r"\A[-+]?(?:[0-9][0-9_]*+\.?[0-9_]*|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?\Z")
SPECIAL: Final = re.compile(r"\A(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
PLAIN: Final = (
    ("int", INTEGER, "-+0123456789"),
    ("float", FLOAT, "-+.0123456789"),
    ("float", SPECIAL, "-+."),
    ("bool", re.compile(r"\A[yYnN]\Z"), "yYnN"),
)
"""What kubectl and PyYAML read differently: the type, its pattern, and its first letters."""


def to_yaml(value: object, *, sort_keys: bool = True, allow_unicode: bool = True) -> str:
    """Return a value as YAML."""
    made: str = yaml.dump(value, Dumper=_Dumper, sort_keys=sort_keys, allow_unicode=allow_unicode)
    return made


class _Dumper(yaml.SafeDumper):
    """Quotes the texts that are none for kubectl, such as `y` and `1e3`."""


for _kind, _pattern, _first in PLAIN:
    _Dumper.add_implicit_resolver(YAML_TAG + _kind, _pattern, [*_first])
