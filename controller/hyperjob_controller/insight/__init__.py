"""The metrics of the controller, and its debug pages."""
