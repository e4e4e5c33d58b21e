"""The URL path of each webhook, in the form of kubebuilder."""

from typing import Final

MUTATE_HYPERJOB: Final = "/mutate-training-volcano-sh-v1alpha1-hyperjob"
VALIDATE_HYPERJOB: Final = "/validate-training-volcano-sh-v1alpha1-hyperjob"
MUTATE_RESOURCEBINDING: Final = "/mutate-work-karmada-io-v1alpha2-resourcebinding"

PATHS: Final = frozenset({MUTATE_HYPERJOB, VALIDATE_HYPERJOB, MUTATE_RESOURCEBINDING})
