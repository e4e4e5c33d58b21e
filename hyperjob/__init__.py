"""One training job across many Kubernetes clusters."""

from hyperjob_core import __version__ as __version__
