"""A gang across clusters: held until it is whole, checked again, given back when it stays in parts.

Pure: the time is an input, and every memory is in the HyperJob's status.
"""
