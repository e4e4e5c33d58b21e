"""The built-in kinds, and how definitions become served ones."""
