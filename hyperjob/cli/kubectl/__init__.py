"""What commands share with kubectl: its flags, words, exit codes and ways of printing.

Knows no verb and no HyperJob beyond its name.
"""
