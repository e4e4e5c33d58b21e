"""Listening sockets of the processes: connections by peer, and which is closed first."""
