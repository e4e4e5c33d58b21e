"""Kubernetes' resource.Quantity: its grammar, rounding and canonical text.

A quantity is exact, in whole nano-units. As in Kubernetes, a finer amount is rounded away from
zero, and an amount with a binary suffix is at most 2**63-1.

The kinds of resources by their names: native, extended, huge pages, quota-only.

The source of the rules is Kubernetes' `pkg/apis/core/helper` and `validation`.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

NANO: Final = 10**9
MAX: Final = (2**63 - 1) * NANO
"""The largest amount, in nano-units, that Kubernetes counts in whole units without overflow."""
# Kubernetes has no such bounds: without them a two-line manifest could need gigabytes.
_MAX_EXPONENT: Final = 1000
MAX_LENGTH: Final = 1024

_SPLIT_TEXT: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_FORMAT_WRONG: Final = f"quantities must match the regular expression '{_SPLIT_TEXT}'"
_NUMERIC: Final = "unable to parse numeric part of quantity"
_SUFFIX: Final = "unable to parse quantity's suffix"

# Possessive quantifiers: without backtracking the match takes linear time.
_PARTS: Final = re.compile(
    r"(?P<sign>[+-]?+)0*+(?P<num>[0-9]*+)(?:\.(?P<denom>[0-9]*+))?+"
    r"(?P<suffix>[eEinumkKMGTP]*+[+-]?+[0-9]*+)"
)
_EXPONENT: Final = re.compile(r"[eE]([+-]?+[0-9]++)")

_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = ("", *_BINARY)


class Format(StrEnum):
    """The format of a quantity's text."""

    DECIMAL_EXPONENT = "DecimalExponent"
    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """A quantity in whole nano-units; equality and hash depend on the amount alone."""

    nano: int = 0
    format: Format = field(default=Format.DECIMAL_SI, compare=False)
    text: str = field(default="", compare=False, repr=False)
    """The original text, if Kubernetes keeps that text."""

    @classmethod
    def parse(cls, value: str | float) -> Self:
        """Parse a quantity; raises ValueError with Kubernetes' message."""
        text = value if isinstance(value, str) else repr(value)
        if len(text) > MAX_LENGTH:
            raise ValueError(_NUMERIC)
        match = _PARTS.fullmatch(text)
        if not text or match is None:
            raise ValueError(_FORMAT_WRONG)
        num, denom = match["num"] or "0", match["denom"] or ""
        suffix = match["suffix"]
        sign = -1 if match["sign"] == "-" else 1
        if suffix in _BINARY:
            return cls._binary(text, sign, num, denom, _BINARY[suffix])
        if suffix in _DECIMAL:
            return cls._decimal(text, sign, num, denom, _DECIMAL[suffix], Format.DECIMAL_SI)
        exponent = _EXPONENT.fullmatch(suffix)
        if exponent is None:
            raise ValueError(_SUFFIX)
        power = int(exponent[1])
        return cls._decimal(text, sign, num, denom, power, Format.DECIMAL_EXPONENT)

    @classmethod
    def _decimal(
        cls, text: str, sign: int, num: str, denom: str, exponent: int, form: Format
    ) -> Self:
        """Return a quantity of `num`.`denom` times a power of ten, rounded up to nano-units.

        The text is kept where Kubernetes keeps it: up to 18 digits in canonical form.
        """
        digits = num + denom
        scale = exponent - len(denom)
        if scale + 9 > _MAX_EXPONENT or len(digits) > _MAX_EXPONENT:
            raise ValueError(_NUMERIC)
        magnitude = int(digits)
        if scale >= -9:
            nano = magnitude * 10 ** (scale + 9)
            kept = (
                len(digits) <= 18
                and scale % 3 == 0
                and not digits.endswith("000")
                and digits[0] != "0"
            )
            return cls(sign * nano, form, text if kept else "")
        return cls(sign * _divide_up(magnitude, -scale - 9), form)

    @classmethod
    def _binary(cls, text: str, sign: int, num: str, denom: str, exponent: int) -> Self:
        """Return a quantity of `num`.`denom` times two to the power `exponent`, at most MAX.

        As in Kubernetes an amount below 1 becomes a decimal quantity.
        """
        if len(num) + len(denom) > _MAX_EXPONENT:
            raise ValueError(_NUMERIC)
        magnitude = int(num + denom) << exponent
        if not denom and 14 - len(num) - exponent * 3 // 10 >= 0:
            kept = int(num) & 7 != 0
            return cls(sign * magnitude * NANO, Format.BINARY_SI, text if kept else "")
        nano = min(_divide_up(magnitude * NANO, len(denom)), MAX)
        form = Format.DECIMAL_SI if 0 < nano < NANO else Format.BINARY_SI
        return cls(sign * nano, form)

    @property
    def is_integer(self) -> bool:
        """Whether the amount is a whole number."""
        return self.nano % NANO == 0

    def __bool__(self) -> bool:
        return self.nano != 0

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano + other.nano, (self if self.nano else other).format)

    def __str__(self) -> str:
        return self.text or self.canonical

    @property
    def canonical(self) -> str:
        """The text with the largest suffix that needs no fraction."""
        if not self.nano:
            return "0"
        if self.format is Format.BINARY_SI and abs(self.nano) >= 1024 * NANO and self.is_integer:
            return self._canonical_binary()
        mantissa, exponent = self.nano, -9
        while mantissa % 1000 == 0:
            mantissa, exponent = mantissa // 1000, exponent + 3
        if self.format is not Format.DECIMAL_EXPONENT and exponent in _DECIMAL_SUFFIX:
            return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)

    def _canonical_binary(self) -> str:
        mantissa, power = self.nano // NANO, 0
        while mantissa % 1024 == 0 and power < len(_BINARY_SUFFIX) - 1:
            mantissa, power = mantissa // 1024, power + 1
        return f"{mantissa}{_BINARY_SUFFIX[power]}"


def _divide_up(magnitude: int, digits: int) -> int:
    """Return the magnitude without its last decimal digits, rounded up."""
    if digits > _MAX_EXPONENT * 2:
        return int(magnitude > 0)
    divisor: int = 10**digits
    return -(-magnitude // divisor)


COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""The native resources of containers, which may be overcommitted."""

HUGE_PAGES: Final = "hugepages-"

_QUOTA_ONLY: Final = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
        "storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    }
)


def is_native(name: str) -> bool:
    """Return whether the resource is native: its name has no domain, or that of Kubernetes."""
    return "/" not in name or "kubernetes.io/" in name


def is_huge_pages(name: str) -> bool:
    """Return whether the resource is memory in huge pages of one size."""
    return name.startswith(HUGE_PAGES)


def is_quota_only(name: str) -> bool:
    """Return whether the name is valid in a ResourceQuota only, not in a container."""
    return name in _QUOTA_ONLY or name.startswith("requests.hugepages-")


def is_unqualified(name: str) -> bool:
    """Return whether the name has no domain and is not native: an extended resource needs one."""
    return (
        "/" not in name
        and name not in COMPUTE
        and not is_huge_pages(name)
        and not is_quota_only(name)
    )


def may_be_overcommitted(name: str) -> bool:
    """Return whether a request may be below its limit, as for cpu but not for devices."""
    return is_native(name) and not is_huge_pages(name) and not is_unqualified(name)
