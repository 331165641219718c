#!/bin/bash
# java for those before 25: leaves out the options that they do not know.
known=()
for word in "$@"; do
  case $word in
    -XX:AOTCache*=* | --sun-misc-unsafe-memory-access=*) ;;
    *) known+=("$word") ;;
  esac
done
exec "$0.real" "${known[@]}"
