"""The screens: each takes what it needs from the world and gives the parts of its page as HTML."""
