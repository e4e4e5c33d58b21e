"""Rights from Roles and their bindings: who may do what, and who may hand it on."""
