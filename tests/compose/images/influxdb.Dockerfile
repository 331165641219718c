# hadolint global ignore=DL3066
FROM spikelab-stand-in-base:bookworm
RUN groupadd --system --gid 1500 influxdb \
 && useradd --system --uid 1500 --gid influxdb --home-dir /var/lib/influxdb --create-home --shell /bin/false influxdb
COPY influxd influx /usr/bin/
COPY influxdb-entrypoint.sh /entrypoint.sh
EXPOSE 8086
VOLUME /var/lib/influxdb
USER influxdb
ENTRYPOINT ["/entrypoint.sh"]
CMD ["influxd"]
