"""Changes of an object without changing the original: only the changed parts are copied.

Values of an unexpected type stay as they are.
"""

from collections.abc import Callable
from typing import Final

from hyperjob_core.api.limits import MAX_REPLICATED_JOBS
from hyperjob_core.api.meta import Object

MAX_EDITED: Final = MAX_REPLICATED_JOBS
"""The longest list with items to edit that the schema allows."""

Edit = Callable[[Object], Object]


def edit(parent: Object, name: str, change: Edit) -> Object:
    """Return `parent` with `change` applied to the object in field `name`.

    Without a change the result is `parent` itself.
    """
    before = parent.get(name)
    if not isinstance(before, dict):
        return parent
    after = change(before)
    return parent if after is before else {**parent, name: after}


def edit_items(parent: Object, name: str, change: Edit) -> Object:
    """Return `parent` with `change` applied to each object in list `name`.

    Without a change the result is `parent` itself. A list of more than MAX_EDITED items stays as
    it is: validation refuses it later.
    """
    before = parent.get(name)
    if not isinstance(before, list) or len(before) > MAX_EDITED:
        return parent
    after = [change(item) if isinstance(item, dict) else item for item in before]
    if all(new is old for new, old in zip(after, before, strict=True)):
        return parent
    return {**parent, name: after}
