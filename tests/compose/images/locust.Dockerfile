# hadolint global ignore=DL3008,DL3009,DL3066
FROM spikelab-stand-in-base:bookworm
COPY locust.lock /
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >/dev/null \
 && python3 -m venv /opt/venv && /opt/venv/bin/pip install --quiet --no-cache-dir --require-hashes -r /locust.lock \
 && useradd --create-home locust
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1
USER locust
WORKDIR /home/locust
EXPOSE 8089 5557
ENTRYPOINT ["locust"]
