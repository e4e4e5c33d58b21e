"""Copies of the API server's objects: what a pass reads instead of asking.

`informers` list and watch each kind that a decision depends on; `mutationcache` puts our own writes
on top until the informer has seen them, so that no pass works on a state that it has changed
itself; `parsed` keeps what was parsed of an object until that object changes. Nothing here is
decided, and all of it is read anew after a restart.
"""
