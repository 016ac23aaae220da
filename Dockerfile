# The image: spark-exporter with all its features, and nothing else that can be
# run. Build it from the root of the checkout:
#
#   docker buildx build --tag spark-exporter .
#
# It needs no right, no shell and no file of its own that it could write: run it
# as anybody, with a read-only root. Where something is to be kept (storage.path,
# storage.temp_path), mount a place for it.
FROM rust:1.95.0-slim-trixie AS build
# A C compiler and make build zstd and aws-lc, two of the dependencies.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential \
    && rm -rf /var/lib/apt/lists/*
# Writes the list of dependencies into the program, where scanners find it.
RUN cargo install --locked cargo-auditable@0.7.7
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
COPY .ci/build ./.ci/
COPY src ./src
# Cargo.toml names them; they are not built here.
COPY benches ./benches
COPY tests ./tests
RUN .ci/build /spark-exporter

# glibc, libgcc, certificates of public authorities, time zones: no shell.
FROM gcr.io/distroless/cc-debian13:nonroot
LABEL org.opencontainers.image.title="spark-exporter" \
      org.opencontainers.image.description="Watches Apache Spark from outside and says what is wrong: Prometheus metrics, OTLP, reports" \
      org.opencontainers.image.source="https://github.com/spark-exporter/spark-exporter" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /spark-exporter /usr/local/bin/spark-exporter
USER 65532:65532
EXPOSE 10404
ENTRYPOINT ["/usr/local/bin/spark-exporter"]
