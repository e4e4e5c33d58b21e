"""The type of a Kubernetes object as JSON. The module imports little: all others import it."""

from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
"""An object, or a part of one, as decoded JSON."""
