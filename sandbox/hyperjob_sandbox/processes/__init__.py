"""Pods that are processes of this machine.

A kubelet of this package runs the command of each container as a process instead of pretending to.
`kubelet.py` watches the pods of a cluster, `pod.py` lives through one pod, `host.py` is the one
child process that starts, observes and ends all others, `hostclient.py` talks to it. The other
files are what a container gets: environment, volumes, addresses, probes, logs.
"""
