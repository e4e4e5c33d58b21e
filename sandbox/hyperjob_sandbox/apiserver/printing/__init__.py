"""Tables as `kubectl get` prints them."""
