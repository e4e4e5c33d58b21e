# One image for both processes, the installer and the certificates. Nothing in it needs a shell, a
# writable file system or root.
ARG BASE=python:3.13.9-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN ["python", "-m", "pip", "install", "--no-cache-dir", "--require-hashes", "-r", "requirements/build.txt"]
RUN ["python", "-m", "venv", "--without-pip", "/opt/hyperjob"]
RUN ["python", "-m", "pip", "--python", "/opt/hyperjob", "install", "--no-cache-dir", "--require-hashes", "--only-binary=:all:", "-r", "requirements/runtime.txt"]
COPY LICENSE README.md pyproject.toml ./
COPY crds crds
COPY examples examples
COPY certs certs
COPY hyperjob hyperjob
COPY webhook webhook
COPY controller controller
RUN ["python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "/src/dist", "."]
RUN ["python", "-m", "pip", "--python", "/opt/hyperjob", "install", "--no-cache-dir", "--no-deps", "--no-index", "--find-links", "/src/dist", "hyperjob"]

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="hyperjob" \
      org.opencontainers.image.description="One training job across many Kubernetes clusters" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/hyperjob /opt/hyperjob
ENV PATH=/opt/hyperjob/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["hyperjob"]
CMD ["--help"]
