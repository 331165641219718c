# hadolint global ignore=DL3008,DL3009
FROM spikelab-stand-in-base:bookworm
ENV PATH=/usr/share/grafana/bin:$PATH \
    GF_PATHS_CONFIG=/etc/grafana/grafana.ini \
    GF_PATHS_DATA=/var/lib/grafana \
    GF_PATHS_HOME=/usr/share/grafana \
    GF_PATHS_LOGS=/var/log/grafana \
    GF_PATHS_PLUGINS=/var/lib/grafana/plugins \
    GF_PATHS_PROVISIONING=/etc/grafana/provisioning
WORKDIR /usr/share/grafana
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends curl >/dev/null \
 && useradd --system --uid 472 --gid 0 --no-create-home grafana \
 && mkdir -p /etc/grafana/provisioning /var/log/grafana /var/lib/grafana/plugins data \
 && touch /etc/grafana/grafana.ini && chown -R grafana:root /etc/grafana /var/log/grafana /var/lib/grafana
COPY bin bin
COPY conf conf
COPY public public
COPY grafana-run.sh /run.sh
EXPOSE 3000
USER 472
ENTRYPOINT ["/run.sh"]
