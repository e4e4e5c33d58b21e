"""Explain why a HyperJob is not running: evidence in, an explanation out.

`gather` reads the objects, the rules decide from these objects alone, and the command's view
prints the result.
"""
