"""The root field paths of a HyperJob: metadata and spec."""

from typing import Final

from hyperjob_core.api.field import ROOT

SPEC: Final = ROOT.child("spec")
METADATA: Final = ROOT.child("metadata")
