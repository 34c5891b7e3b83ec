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

// databaseSettings are the settings that determine the speed and the durability of a
// PostgreSQL.
var databaseSettings = []string{"server_version", "fsync", "full_page_writes", "synchronous_commit", "shared_buffers", "max_wal_size", "wal_sync_method"}

// schemaOf returns the URL of the database of a server: a schema of its own, so that a
// run begins with an empty database and leaves nothing behind.
func (l *Env) schemaOf(data string) (string, error) {
	run := strings.TrimPrefix(filepath.Base(l.Dir), ".fanfare-bench-")
	return postgres.InSchema(l.DB, "bench_"+run+"_"+strings.ToLower(strings.ReplaceAll(data, "-", "_")))
}

// environment returns the environment variables that name the database of a server.
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

// dropSchemas removes the schemas that the servers of the run have created.
func (l *Env) dropSchemas() error {
	var errs []error
	for schema := range l.schemas {
		errs = append(errs, postgres.Drop(context.WithoutCancel(l.Ctx), schema))
	}
	return errors.Join(errs...)
}

// Describe records the version and the settings of the database.
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
