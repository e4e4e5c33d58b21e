"""What a release needs beside the commands of the Makefile; RELEASE.md says when each runs."""
