"""The external splitter: an HTTP service of the user that decides how accelerators are shared out.

`protocol` is pure and serves both sides; `client` makes the calls; `outside` checks the answers.
"""
