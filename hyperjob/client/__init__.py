"""Read and change HyperJobs: the library of the command line, the SDK and the web page.

The functions take an open `Kube` and names of objects. The package prints nothing and does not
import the command line.
"""
