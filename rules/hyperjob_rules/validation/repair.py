"""A copy of an object without its wrong values, which shares all unchanged parts."""

from typing import Any

from hyperjob_core.api.meta import Object

Location = tuple[int | str, ...]


class Repair:
    """A partial copy of an object: each edit copies the parts above it once."""

    def __init__(self, raw: object) -> None:
        self.root: Object = dict(raw) if isinstance(raw, dict) else {}
        self._own: set[int] = {id(self.root)}

    def put(self, location: Location, value: object) -> None:
        """Set the value at a location, if the location still exists."""
        holder, last = self._holder(location), location[-1]
        if isinstance(holder, dict):
            holder[str(last)] = value
        elif isinstance(holder, list) and isinstance(last, int):
            holder[last] = value

    def drop(self, location: Location, empty: object) -> None:
        """Remove a value; a list item becomes `empty`, which keeps the other paths valid."""
        if not location:
            self.root.clear()
            return
        holder, last = self._holder(location), location[-1]
        if isinstance(holder, dict):
            holder.pop(str(last), None)
        elif isinstance(holder, list) and isinstance(last, int):
            holder[last] = empty

    def _holder(self, location: Location) -> object:
        """Return the copied parent of a location; None if it was removed."""
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
