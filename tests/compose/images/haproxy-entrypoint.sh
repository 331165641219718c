#!/bin/sh
# Behaves as the official image's: options alone are haproxy's, which runs as master and workers, in
# the foreground.
set -e
case $1 in -*) set -- haproxy "$@" ;; esac
if [ "$1" = haproxy ]; then
  shift
  set -- haproxy -W -db "$@"
fi
exec "$@"
