"""Pods whose containers are processes of this machine.

The kubelet of this package runs the command of each container as a process, where the simulated
kubelet runs none. `kubelet.py` watches the pods of a cluster, `pod.py` runs a pod, `host.py` is
the child process that starts, observes and ends all container processes, `hostclient.py` sends
commands to it. The other modules provide the environment, volumes, addresses, probes and logs of a
container.
"""
