"""How often Python looks for reference cycles; reference counts free everything else at once."""

import gc


def collect_rarely(objects: int = 20_000) -> None:
    """Look for reference cycles every `objects` new objects, instead of every 700.

    A review and a pass make thousands of short-lived values and hardly a cycle: at 700, looking for
    cycles takes a tenth of validation, and a twentieth of the controller's processor time.
    """
    gc.set_threshold(objects, 20, 20)
