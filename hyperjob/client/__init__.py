"""Read and change HyperJobs: the library below the command line, the SDK and the web page.

Functions take an open `Kube` and plain names. The package prints nothing and knows no command line.
"""
