"""The screens: each reads the world and returns the parts of its page as HTML."""
