"""The types of a reconcile: the observed objects (`observed`) and the plan (`planned`). No I/O."""
