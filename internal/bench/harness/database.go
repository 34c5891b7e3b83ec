package harness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/store/postgres"
)

// databaseSettings are what decides how fast a PostgreSQL is, and how durable.
var databaseSettings = []string{"server_version", "fsync", "full_page_writes", "synchronous_commit", "shared_buffers", "max_wal_size", "wal_sync_method"}

// schemaOf is the URL of what the server of a data directory keeps: a schema of
// its own, so that a run begins with nothing and leaves nothing.
func (l *Env) schemaOf(data string) (string, error) {
	run := strings.TrimPrefix(filepath.Base(l.Dir), ".fanfare-bench-")
	return postgres.InSchema(l.DB, "bench_"+run+"_"+strings.ToLower(strings.ReplaceAll(data, "-", "_")))
}

// environment says to a server which database it has: none but those of the run.
func (l *Env) environment(data string) ([]string, error) {
	if l.DB == "" {
		return []string{"FANFARE_DB="}, nil
	}
	schema, err := l.schemaOf(data)
	if err != nil {
		return nil, err
	}
	l.schemas[schema] = true
	return []string{"FANFARE_DB=" + schema}, nil
}

// dropSchemas removes what the servers of the run kept in the database.
func (l *Env) dropSchemas() error {
	var errs []error
	for schema := range l.schemas {
		errs = append(errs, postgres.Drop(context.WithoutCancel(l.Ctx), schema))
	}
	return errors.Join(errs...)
}

// Describe notes in a record which database it was, and how it is set.
func (l *Env) Describe(r *report.Record) error {
	if l.DB == "" {
		return nil
	}
	settings, err := postgres.Settings(l.Ctx, l.DB, databaseSettings)
	if err != nil {
		return err
	}
	var list []string
	for _, name := range databaseSettings[1:] {
		list = append(list, name+"="+settings[name])
	}
	sessions := "on"
	if l.Durability != "fsync" {
		sessions = "off"
	}
	r.Params["db"] = "PostgreSQL " + settings["server_version"]
	r.Params["db_settings"] = fmt.Sprintf("%s; synchronous_commit=%s in the server's sessions", strings.Join(list, " "), sessions)
	return nil
}
