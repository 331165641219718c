# hadolint global ignore=DL3008,DL3009
FROM spikelab-stand-in-base:bookworm
# The official image has a wget too.
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends wget >/dev/null \
 && useradd --create-home --uid 12345 k6
COPY k6 /usr/bin/k6
USER 12345
WORKDIR /home/k6
ENTRYPOINT ["k6"]
