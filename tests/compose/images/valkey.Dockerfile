# hadolint global ignore=DL3008,DL3009
# Debian's Redis under Valkey's names: the protocol and the options that the lab uses are the same.
FROM spikelab-stand-in-base:bookworm
RUN groupadd -r -g 999 valkey && useradd -r -g valkey -u 999 valkey \
 && apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server >/dev/null \
 && ln -s /usr/bin/redis-server /usr/local/bin/valkey-server \
 && ln -s /usr/bin/redis-cli /usr/local/bin/valkey-cli \
 && mkdir -p /data && chown 999:999 /data && chmod 1777 /data
COPY valkey-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
WORKDIR /data
EXPOSE 6379
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["valkey-server"]
