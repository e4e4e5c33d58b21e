"""Take wrong values out of an object, without changing it and without copying all of it.

Knows nothing of what is wrong.
"""

from typing import Any

from hyperjob.api.meta import Object

Location = tuple[int | str, ...]


class Repair:
    """A copy of an object in the making: what is on the way to an edit is copied, once."""

    def __init__(self, raw: object) -> None:
        self.root: Object = dict(raw) if isinstance(raw, dict) else {}
        self._own: set[int] = {id(self.root)}

    def put(self, location: Location, value: object) -> None:
        """Set the value at a location, if there still is such a place."""
        holder, last = self._holder(location), location[-1]
        if isinstance(holder, dict):
            holder[str(last)] = value
        elif isinstance(holder, list) and isinstance(last, int):
            holder[last] = value

    def drop(self, location: Location, empty: object) -> None:
        """Take a value out; a list gets an empty one, so that paths stay what they are."""
        if not location:
            self.root.clear()
            return
        holder, last = self._holder(location), location[-1]
        if isinstance(holder, dict):
            holder.pop(str(last), None)
        elif isinstance(holder, list) and isinstance(last, int):
            holder[last] = empty

    def _holder(self, location: Location) -> object:
        """Return our copy of what holds a location's last step; None if it was taken out."""
        holder: Any = self.root
        for step in location[:-1]:
            child = holder.get(step) if isinstance(holder, dict) else holder[step]
            if not isinstance(child, (dict, list)):
                return None
            if id(child) not in self._own:
                child = child.copy()
                self._own.add(id(child))
                holder[step] = child
            holder = child
        return holder
