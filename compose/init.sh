#!/bin/sh
# Makes the secrets that the stack starts with. Run again, it leaves what is there.
set -eu
umask 077

grafana_user=472

# secret FILE OWNER: 32 random letters and digits, readable by the owner alone.
secret() {
  [ ! -s "$1" ] || return 0
  LC_ALL=C tr -dc 'A-Za-z0-9' < /dev/urandom | head -c 32 > "$1.new"
  chown "$2" "$1.new"
  mv "$1.new" "$1"
  echo "made $1"
}

secret /secrets/grafana/admin-password "$grafana_user"
