#!/bin/bash -e
# Behaves as the official image's: GF_<KEY>__FILE names a file that holds the value of GF_<KEY>.
for name in $(compgen -e | grep '^GF_.*__FILE$' || true); do
  export "${name%__FILE}=$(< "${!name}")"
  unset "$name"
done
exec grafana-server --homepath="$GF_PATHS_HOME" --config="$GF_PATHS_CONFIG" \
  cfg:default.paths.data="$GF_PATHS_DATA" cfg:default.paths.logs="$GF_PATHS_LOGS" \
  cfg:default.paths.plugins="$GF_PATHS_PLUGINS" cfg:default.paths.provisioning="$GF_PATHS_PROVISIONING"
