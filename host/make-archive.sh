#!/bin/sh
# make-archive.sh JAVA JAR ARCHIVE: keeps the classes that the target loads at its start, ready for
# use (class-data sharing). A JVM that cannot leaves an empty file: the target starts without.
set -eu

# Made in a folder beside: a JVM that starts meanwhile could crash on half an archive. Tomcat leaves
# its work folders in it.
new="$3.new"
rm -rf "$new"
mkdir "$new"
# With the log option of host/start-target: a JVM that does not know it is to get none there.
if ! "$1" "-Xlog:cds*=off" -XX:ArchiveClassesAtExit="$new/archive" -Djava.io.tmpdir="$new" \
  -Dspring.context.exit=onRefresh -jar "$2"; then
  rm -f "$new/archive"
fi
touch "$new/archive"
mv -f "$new/archive" "$3"
rm -rf "$new"
