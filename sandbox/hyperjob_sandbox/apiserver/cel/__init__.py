"""Expressions in CEL: rules of custom resources and match conditions of webhooks.

With the functions that Kubernetes adds and our use needs, cel-go's error texts, and schemas for
types. What is not there (URLs, addresses, authorizers) is refused when an expression is compiled.
"""

from hyperjob_sandbox.apiserver.cel.expression import Expression
from hyperjob_sandbox.apiserver.cel.functions import CelError

__all__ = ["CelError", "Expression"]
