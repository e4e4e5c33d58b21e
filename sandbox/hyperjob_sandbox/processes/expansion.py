"""References `$(NAME)` in command, args and env of a container, as Kubernetes expands them.

`$(NAME)` becomes the value of the variable, `$$(NAME)` becomes the text `$(NAME)`, and a reference
to a variable that does not exist stays as it is. (API reference: Container.command.)
"""

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with its references expanded."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(value, text)
