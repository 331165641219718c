# hadolint global ignore=DL3066
FROM spikelab-stand-in-base:bookworm
COPY prometheus promtool /bin/
RUN mkdir -p /etc/prometheus /prometheus && chown nobody:nogroup /etc/prometheus /prometheus
WORKDIR /prometheus
USER nobody
EXPOSE 9090
VOLUME /prometheus
ENTRYPOINT ["/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
