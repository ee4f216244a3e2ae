# kctl as a user without rights, for evidence that is mounted for reading; nothing but the package index is asked while it is built:
#   docker build -t kctl .                                    # --build-arg PIP_INDEX_URL=... for an index of your own
#   docker run --rm --network none --read-only --tmpfs /tmp -v "$PWD/evidence:/evidence:ro" kctl replica loss /evidence
FROM python:3.13-slim-bookworm AS build
ARG PIP_INDEX_URL
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY man man
COPY completions completions
COPY formats formats
COPY kctl kctl
COPY commands commands
RUN python -m venv /opt/kctl && /opt/kctl/bin/pip install --no-cache-dir '.[sql,sasl,keystores,fast]'

FROM python:3.13-slim-bookworm
COPY --from=build /opt/kctl /opt/kctl
RUN useradd --create-home --uid 10001 kctl
ENV PATH=/opt/kctl/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /home/kctl
VOLUME ["/evidence"]
HEALTHCHECK --interval=1m --timeout=30s CMD kctl doctor > /dev/null || exit 1
ENTRYPOINT ["kctl"]
CMD ["--help"]
