# hadolint global ignore=DL3008,DL3009,DL3066
FROM spikelab-stand-in-base:bookworm
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends haproxy >/dev/null \
 && groupmod -g 99 haproxy && usermod -u 99 -g 99 haproxy \
 && mkdir -p /usr/local/etc/haproxy && chown haproxy:haproxy /var/lib/haproxy
COPY haproxy-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
STOPSIGNAL SIGUSR1
ENTRYPOINT ["docker-entrypoint.sh"]
USER haproxy
WORKDIR /var/lib/haproxy
CMD ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
