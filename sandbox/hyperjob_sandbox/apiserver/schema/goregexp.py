"""Go's regular expressions (RE2 syntax) in terms of Python's.

Raises ValueError for what Python cannot express; never guesses another meaning.
"""

import re
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|$)|\\(?P<escape>pP?.|p\{\^?\w+\}|P\{\^?\w+\}|.)"
    r"|\[:(?P<negated>\^?)(?P<posix>[a-z]+):\]|(?P<other>.)",
    re.DOTALL,
)
_LOOKAROUND = re.compile(r"\(\?(?:=|!|<=|<!|#|>|\()")


@lru_cache(maxsize=4096)
def compile_go(pattern: str) -> re.Pattern[str]:
    """Compile a Go pattern; `search` of the result is Go's MatchString."""
    if _LOOKAROUND.search(re.sub(r"\\.", "", pattern)):
        raise ValueError("invalid or unsupported Perl syntax")
    try:
        return re.compile(_translate(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"error parsing regexp: {error}") from error


def _translate(pattern: str) -> str:
    multiline = bool(re.search(r"\(\?[a-zA-Z]*m", pattern))
    out: list[str] = []
    in_class = False
    for found in _TOKEN.finditer(pattern):
        literal, escape, posix, other = found.group("literal", "escape", "posix", "other")
        if literal is not None:
            out.append(re.escape(literal))
        elif escape is not None:
            out.append(_escape(escape))
        elif posix is not None and in_class:
            if posix not in _POSIX or found["negated"]:
                raise ValueError(f"error parsing regexp: invalid character class range: {found[0]}")
            out.append(_POSIX[posix])
        elif posix is not None:
            out.append(found[0])
        elif other == "$" and not in_class and not multiline:
            out.append("\\Z")
        elif other == "[" and in_class:
            out.append("\\[")
        else:
            if other == "[":
                in_class = True
            elif other == "]" and in_class and out[-1] not in ("[", "[^"):
                in_class = False
            if other == "^" and out and out[-1] == "[":
                out[-1] = "[^"
                continue
            out.append(other)
    return "".join(out)


def _escape(escape: str) -> str:
    match escape:
        case "z":
            return "\\Z"
        case "C":
            return "."
        case "Z" | "G" | "K" | "R" | "X":
            raise ValueError(f"error parsing regexp: invalid escape sequence: `\\{escape}`")
        case _ if escape[0] in "pP":
            raise ValueError(f"unsupported Unicode class: `\\{escape}`")
        case _:
            return f"\\{escape}"
