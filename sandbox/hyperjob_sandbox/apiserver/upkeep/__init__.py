"""What the control plane does by itself: garbage collection, namespaces and definitions that go."""
