"""The metrics and the debug page of the controller.

`measures`, `timeuse` and `accelerators` turn passes and capacity into metrics. `debug` serves the
observation and the plan of a HyperJob at this moment, in the form of `explain`.
"""
