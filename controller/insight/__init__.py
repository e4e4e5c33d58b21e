"""What the controller shows of itself: metrics and the debug page.

`measures` and `accelerators` turn passes and capacity into metrics; `debug` serves what a pass
would see and decide at this moment, which `explain` writes as a document. Reading any of it changes
nothing.
"""
