#!/bin/sh
# Prepares the primary for a synchronous standby. The setting takes effect when the database starts for the first time.
set -eu
echo 'host replication fanfare all scram-sha-256' >> "$PGDATA/pg_hba.conf"
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -c "ALTER SYSTEM SET synchronous_standby_names = 'db_2'"
