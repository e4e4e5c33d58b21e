"""What admission and the controller both know of spec.checkpoint: its defaults and names."""

from typing import Final

DEFAULT_PATH: Final = "/checkpoints"
"""Where a claim is mounted, unless spec.checkpoint.path says so."""
DEFAULT_GRACE_SECONDS: Final = 30
"""The terminationGracePeriodSeconds of a pod that has none, as Kubernetes has it."""
VOLUME_NAME: Final = "hyperjob-checkpoints"
"""The volume that the controller adds to the pods for the claim."""
