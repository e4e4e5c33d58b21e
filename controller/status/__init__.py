"""What a HyperJob's status says, derived from what was observed and decided.

Pure. The same observation gives the same status, byte for byte; times move only when states do.
"""
