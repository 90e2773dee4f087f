# The job's image. Two stages: packages and bytecode are made in the first, the second has no compiler and no cache.
#   docker build -t amp-monitor-evaluation .                                   SDK from libs/
#   docker build --build-arg AMP_EVALUATION_VERSION=1.2.3 …                    SDK from the package index
#   docker build --build-arg FLAVOR=small …                                    one OpenAI-compatible gateway, no numpy, no pandas
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
ARG AMP_EVALUATION_VERSION=""
ARG FLAVOR=full
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY libs/amp-evaluation libs/amp-evaluation
COPY deploy/build-packages.sh .
RUN sh build-packages.sh /opt/amp libs/amp-evaluation "${FLAVOR}" "${AMP_EVALUATION_VERSION}"

FROM ${PYTHON_IMAGE}
# Nothing is written at run time: the root file system may be read-only.
ENV PATH=/opt/amp/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=build /opt/amp /opt/amp
WORKDIR /app
COPY main.py .
# Numeric, so that runAsNonRoot can be checked without a look into /etc/passwd.
USER 10001:10001
ENTRYPOINT ["python", "main.py"]
