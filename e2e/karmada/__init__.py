"""A real Karmada of given binaries, as processes of this machine.

Karmada's control plane, member clusters with Volcano, and Volcano Global are the binaries of their
releases. The nodes exist only as objects, and a simulated kubelet runs the pods.
"""
