"""Runs interpreter scripts as Karmada does: Lua 5.1, what it forbids, its `kube` helpers.

Values go in and come out as JSON would: an empty table leaves as nothing, unless the same place of
an object that went in (`like`) says whether it is a list or an object.
"""

from collections.abc import Iterable
from typing import Any

import lupa.lua51 as lupa

from hyperjob_core.api.quantity import NANO, Quantity
from hyperjob_install.interpreters import script

FORBIDDEN = (
    *("collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring"),
    *("rawequal", "rawget", "rawset", "setfenv", "setmetatable", "module", "newproxy"),
)
_FORBID = """
for _, name in ipairs({%s}) do
  _G[name] = function() error(name .. " is not supported") end
end
string.gsub, string.rep, io, debug = nil, nil, nil, nil
"""
_PRELOAD = "return function(kube) package.preload.kube = function() return kube end end"

_MISSING = object()


class Script:
    """One script, in a Lua state of its own."""

    def __init__(self, name: str) -> None:
        self._lua = lupa.LuaRuntime(unpack_returned_tuples=True, register_eval=False)
        self._lua.execute(_FORBID % ",".join(f'"{name}"' for name in FORBIDDEN))
        self._lua.execute(_PRELOAD)(self._kube())
        before = set(self._lua.globals())
        self._lua.execute(script(name))
        self.globals = set(self._lua.globals()) - before

    def call(self, *arguments: Any, function: str = "", like: Iterable[Any] = ()) -> Any:
        """Call a function of the script, by default its only one."""
        if not function:
            (function,) = self.globals
        result = self._lua.globals()[function](*(self._into(each) for each in arguments))
        if isinstance(result, tuple):
            return tuple(_out(each, list(like)) for each in result)
        return _out(result, list(like))

    def _into(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._lua.table_from(
                {key: self._into(each) for key, each in value.items() if each is not None}
            )
        if isinstance(value, list):
            return self._lua.table_from([self._into(each) for each in value])
        return value

    def _kube(self) -> Any:
        return self._lua.table_from(
            {
                "resourceAdd": _resource_add,
                "getResourceQuantity": _resource_quantity,
                "accuratePodRequirements": lambda template: self._into(_requirements(template)),
                "getPodDependencies": lambda template, namespace: self._into(
                    _dependencies(template, namespace)
                ),
            }
        )


def _out(value: Any, like: list[Any]) -> Any:
    if lupa.lua_type(value) != "table":
        return value
    keys = list(value)
    if not keys:
        return next((type(each)() for each in like if isinstance(each, dict | list)), _MISSING)
    if keys == list(range(1, len(keys) + 1)):
        items = [each for one in like if isinstance(one, list) for each in one]
        return [_out(value[key], items) for key in keys]
    objects = [one for one in like if isinstance(one, dict)]
    out = {key: _out(value[key], [one[key] for one in objects if key in one]) for key in keys}
    return {key: each for key, each in out.items() if each is not _MISSING}


def _quantity(text: Any) -> Quantity:
    if text is None:
        return Quantity()
    assert isinstance(text, str), "Karmada raises a type error for anything but text"
    return Quantity.parse(text)


def _resource_add(*quantities: Any) -> str:
    total = Quantity()
    for each in quantities:
        total = total + _quantity(each)
    return str(total)


def _resource_quantity(text: Any) -> float:
    return _quantity(text).nano / NANO


def _requirements(template: Any) -> Any:
    """Sum the containers' requests; None for a pod that asks for nothing."""
    pod = _out(template, [])
    assert isinstance(pod, dict) or pod is _MISSING
    spec = {} if pod is _MISSING else pod.get("spec", {})
    total: dict[str, Quantity] = {}
    for container in spec.get("containers", []):
        for name, text in container.get("resources", {}).get("requests", {}).items():
            total[name] = total.get(name, Quantity()) + Quantity.parse(text)
    found: dict[str, Any] = {}
    if total:
        found["resourceRequest"] = {name: str(amount) for name, amount in total.items()}
    if "nodeSelector" in spec:
        found["nodeClaim"] = {"nodeSelector": spec["nodeSelector"]}
    return found or None


def _dependencies(template: Any, namespace: Any) -> Any:
    """List what the volumes name; None, as Karmada says it, for a pod without any."""
    pod = _out(template, [])
    found = []
    for volume in ({} if pod is _MISSING else pod.get("spec", {})).get("volumes", []):
        for field, key, kind in (
            ("configMap", "name", "ConfigMap"),
            ("secret", "secretName", "Secret"),
            ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim"),
        ):
            if field in volume:
                found.append(
                    {
                        "apiVersion": "v1",
                        "kind": kind,
                        "namespace": namespace or "default",
                        "name": volume[field][key],
                    }
                )
    return found or None
