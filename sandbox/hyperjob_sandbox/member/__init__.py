"""The simulated member cluster: nodes, gang scheduler, kubelet and Volcano's job controller."""
