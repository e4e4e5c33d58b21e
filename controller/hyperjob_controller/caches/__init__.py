"""The informer caches: copies of the API server's objects, which a pass reads without a request.

`informers` list and watch each kind that a plan depends on. `mutationcache` adds the controller's
own writes until the informer has seen them: a pass never works on a state before its own changes.
`parsed` keeps the parsed value of an object until the object changes. `shared` keeps equal parts of
objects once. After a restart the informers list all objects again.
"""
