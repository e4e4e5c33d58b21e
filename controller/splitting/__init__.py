"""The external splitter: a service of the user decides how accelerators are shared out, over HTTP.

`protocol` is pure and is used by both sides; `client` makes the calls.
"""
