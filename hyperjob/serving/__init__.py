"""Listening sockets of the processes: how many connections, from whom, and which goes first."""
