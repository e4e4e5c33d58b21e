"""The one answer to "why is it not running": evidence in, an explanation out.

`gather` reads, the rules decide on what was read alone, `view` says it.
"""
