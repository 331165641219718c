#!/bin/sh
# Behaves as the official image's where it is not started as root: options or a file of settings
# alone are the server's.
set -e
case $1 in -* | *.conf) set -- valkey-server "$@" ;; esac
exec "$@"
