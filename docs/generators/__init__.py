"""The programs that write the pages of the reference from code."""
