"""State that the controller keeps in memory between passes, and can lose without harm.

`reservations` derive from vcjobs and Clusters, `priorities` from PriorityClasses: after a restart
the controller rebuilds them from the informer caches. `refusals` delay the next try of an object
that the API server refused; after a restart the controller tries at once. `tombstones` are the
names of recently deleted vcjobs; after a restart there are none.

Everything else is in the status of a HyperJob or on its objects before the controller acts on it:
attempts, restarts, the sizes of an automatic split, the cluster of a sub-job, its admission by a
queue, the next try of a gang. The controller may stop at any moment, and the next leader decides
the same.
"""
