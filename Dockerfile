# One image for both processes, the installer and the certificates. Nothing in it needs a shell, a
# writable file system or root.
# Dependabot proposes newer bases here, and `make pin` writes the digest that the tag has now: docs/install.md, "Build
# and verify the image".
FROM python:3.14.7-slim-trixie@sha256:51dafde81dbdb6ebde285137a295cf18a47ca95234fe388a343719cb97305b3d AS base

FROM base AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN ["python", "-m", "pip", "install", "--require-hashes", "-r", "requirements/build.txt"]
RUN ["python", "-m", "venv", "--without-pip", "/opt/hyperjob"]
RUN ["python", "-m", "pip", "--python", "/opt/hyperjob", "install", "--no-compile", "--require-hashes", "--only-binary=:all:", "-r", "requirements/runtime.txt"]
# All that comes from elsewhere is there; what is built is installed from where it is built.
ENV PIP_NO_INDEX=1 \
    PIP_FIND_LINKS=dist
COPY LICENSE README.md pyproject.toml hatch_build.py ./
COPY crds crds
COPY examples examples
COPY certs certs
COPY core core
COPY engine engine
COPY queueing queueing
COPY rules rules
COPY install install
COPY page page
COPY hyperjob hyperjob
COPY webhook webhook
COPY controller controller
COPY trainjobs trainjobs
RUN ["python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", "."]
RUN ["python", "-m", "pip", "--python", "/opt/hyperjob", "install", "--no-compile", "--no-deps", "hyperjob"]
# Compiled here, since nothing can be written where it runs; by hash, so that it is the same every
# time. Two thirds of it would be the Kubernetes client's models, which no process imports.
RUN ["python", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-x", "/kubernetes/(aio/)?client/(api|models)/", "/opt/hyperjob/lib"]

FROM base
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="hyperjob" \
      org.opencontainers.image.description="One training job across many Kubernetes clusters" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Nothing is installed any more; and the base comes without bytecode, which costs each start seconds.
RUN ["python", "-B", "-m", "pip", "uninstall", "--yes", "--root-user-action=ignore", "pip"]
RUN ["python", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-x", "/(ensurepip|idlelib|lib2to3|pydoc_data|tkinter|turtledemo)/", "/usr/local/lib"]
COPY --from=build /opt/hyperjob /opt/hyperjob
ENV HOME=/ \
    PATH=/opt/hyperjob/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["hyperjob"]
CMD ["--help"]
