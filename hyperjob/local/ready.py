"""The file by which `hyperjob sandbox up` signals that all its servers are ready."""

from typing import Final

READY_FILE: Final = "ready"
"""`hyperjob sandbox up` writes this file last, beside the kubeconfigs."""
