"""What every Kubernetes object is on the wire. Imports next to nothing, since all import it."""

from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
"""An object, or a part of one, as it is on the wire."""
