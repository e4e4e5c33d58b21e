"""The score of a node for a pod by the default weights of Volcano's plugins nodeorder and binpack.

Each part is rounded as there: small differences decide between nodes that are almost equal.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Final

from hyperjob_engine.model.nodes import Frozen
from hyperjob_engine.resources import Resources

_GPU: Final = "nvidia.com/gpu"
_BALANCED: Final = ("cpu", "memory", _GPU)


def default_score(free: Resources, whole: Resources, wanted: Frozen) -> float:
    """Return the score of a node, from 0 to about 300, without preferred affinity.

    It is the sum of least requested and balanced resources (nodeorder), and of binpack.
    """
    request = dict(wanted)
    before, after, least, packed = [], [], list[int](), []
    for name in _BALANCED:
        amount, more = whole.get(name, 0), request.get(name, 0)
        if amount <= 0 or (name == _GPU and not more):
            continue
        used = amount - free.get(name, 0)
        before.append(min(1.0, used / amount))
        after.append(min(1.0, (used + more) / amount))
        if name != _GPU:
            least.append((amount - used - more) * 100 // amount)
            packed += [(used + more) / amount] if more else []
    score = 50 + (50 + _evenness(after) - _evenness(before)) // 2
    score += sum(least) // len(least) if least else 0
    return round(score + (100 * sum(packed) / len(packed) if packed else 0.0), 6)


def _evenness(shares: Sequence[float]) -> int:
    """Return how alike the shares in use are, from 50 to 100."""
    if len(shares) < 2:
        return 100
    mean = sum(shares) / len(shares)
    return int(100 * (1 - sqrt(sum((each - mean) ** 2 for each in shares) / len(shares))))
