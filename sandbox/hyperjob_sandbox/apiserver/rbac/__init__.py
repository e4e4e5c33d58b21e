"""Rights from Roles and their bindings: who may do what."""
