#!/bin/bash
# Behaves as the official image's: on an empty volume a first server, on loopback only, makes
# INFLUXDB_DB and stops; then the real one takes its place.
set -e
if [ -n "$INFLUXDB_DB" ] && [ ! -d "${INFLUXDB_META_DIR:-/var/lib/influxdb/meta}" ]; then
  INFLUXDB_HTTP_BIND_ADDRESS=127.0.0.1:8086 influxd &
  first=$!
  for _ in $(seq 30); do
    influx -host 127.0.0.1 -execute "CREATE DATABASE $INFLUXDB_DB" && break
    sleep 1
  done
  kill -TERM "$first"
  wait "$first"
fi
exec "$@"
