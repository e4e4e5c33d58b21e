"""The codes of reasons, and the sentences that several steps share; no code parses a sentence."""
