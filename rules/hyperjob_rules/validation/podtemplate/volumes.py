"""Volumes of a pod: each has a name and one source; the API server takes none for an emptyDir."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_rules.validation.podtemplate.objects import one_of
from hyperjob_rules.validation.podtemplate.sources import SOURCES
from hyperjob_rules.validation.podtemplate.table import Type, required
from hyperjob_rules.validation.podtemplate.values import form

VOLUME: Final = Type(
    "Volume",
    "a volume",
    required("name", form(formats.dns1123_label)),
    together=(
        one_of(
            "Volume",
            "a volume",
            SOURCES,
            twice=("may not specify more than 1 volume type", "keep one of them"),
        ),
    ),
)
