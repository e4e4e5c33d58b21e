"""Listening sockets of the processes, with limits of connections, also for each peer."""
