"""What the controller remembers between passes, none of which a restart may lose for good.

`reservations` and `capacity` repeat what the API server says of vcjobs and Clusters; they are built
anew from the caches. `priorities` follows PriorityClasses in the same way. `refusals` delay the
next try of an object that the API server refused; after a restart it is tried once more, at once.
`tombstones` remember the names of vcjobs that have just gone, for a suspicion that ends with the
process. Everything that must outlive the process is in the status of a HyperJob or on its objects
before anything is done about it: attempts, restarts, the sizes of an automatic split, the cluster
of a sub-job, what a queue admitted, when a gang may ask again. So each process may be killed at any
moment, and the next leader decides the same.
"""
