"""The places at which every rule about a HyperJob begins."""

from typing import Final

from hyperjob.api.field import ROOT

SPEC: Final = ROOT.child("spec")
METADATA: Final = ROOT.child("metadata")
