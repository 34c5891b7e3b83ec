#!/bin/sh
# Copies the primary at the first start, and then runs as its standby.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  PGPASSWORD=$(cat /run/secrets/db_password)
  export PGPASSWORD
  pg_basebackup -d 'host=db-1 user=fanfare application_name=db_2' -D "$PGDATA" -R -X stream -c fast
  unset PGPASSWORD
fi
exec postgres
