# kctl as a user without rights, for evidence that is mounted for reading:
#   docker build -t kctl .
#   docker run --rm --network none -v "$PWD/evidence:/evidence:ro" kctl replica loss /evidence
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY man man
COPY completions completions
COPY formats formats
COPY kctl kctl
COPY commands commands
RUN python -m venv /opt/kctl && /opt/kctl/bin/pip install --no-cache-dir '.[wire,sql,sasl,keystores,fast]'

FROM python:3.13-slim-bookworm
COPY --from=build /opt/kctl /opt/kctl
RUN useradd --create-home --uid 10001 kctl
ENV PATH=/opt/kctl/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /home/kctl
VOLUME ["/evidence"]
ENTRYPOINT ["kctl"]
CMD ["--help"]
