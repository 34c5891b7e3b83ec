package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestDatabaseFindings(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options, *Database)
		check  string
		level  Level
		what   []string
		mend   string
	}{
		"in order":         {func(*Options, *Database) {}, "database", OK, []string{"fanfare@db.example.org:5432/fanfare", "16.4", "250µs"}, ""},
		"durable":          {func(*Options, *Database) {}, "durability", OK, []string{"waits for it"}, ""},
		"durable, relaxed": {func(o *Options, _ *Database) { o.Config.Durability = "relaxed" }, "durability", OK, []string{"does not wait"}, ""},
		"a schema":         {func(*Options, *Database) {}, "schema", OK, []string{"version 2", "3 days", "50 MB"}, ""},
		"no schema":        {func(_ *Options, d *Database) { d.SchemaSeen = 0 }, "schema", OK, []string{"is empty"}, ""},
		"an older schema":  {func(_ *Options, d *Database) { d.SchemaSeen = 1 }, "schema", OK, []string{"upgrades it to version 2"}, ""},
		"a newer schema":   {func(_ *Options, d *Database) { d.SchemaSeen = 3 }, "schema", Wrong, []string{"newer version of Fanfare", "version 3"}, "newer version"},
		"no right to make": {func(_ *Options, d *Database) { d.SchemaSeen, d.MayCreate = 0, false }, "schema", Wrong, []string{"cannot create it"}, "CREATE SCHEMA fanfare"},
		"no right to change": {func(_ *Options, d *Database) { d.MayChange = false }, "schema", Wrong,
			[]string{"belongs to somebody"}, "connect as somebody"},
		"too old":          {func(_ *Options, d *Database) { d.Number, d.Version = 140011, "14.11" }, "database", Wrong, []string{"14.11"}, "15 or later"},
		"another encoding": {func(_ *Options, d *Database) { d.Encoding = "SQL_ASCII" }, "database", Wrong, []string{"SQL_ASCII"}, "ENCODING 'UTF8'"},
		"a standby as db":  {func(_ *Options, d *Database) { d.Standby = true }, "database", Wrong, []string{"is a standby"}, "db_reads"},
		"read-only":        {func(_ *Options, d *Database) { d.ReadOnly = true }, "database", Wrong, []string{"read-only", "cannot start"}, "reset default_transaction_read_only"},
		"no fsync":         {func(_ *Options, d *Database) { d.Fsync = false }, "durability", Wrong, []string{"fsync = off", "power loss"}, "durability to relaxed"},
		"no fsync, relaxed": {func(o *Options, d *Database) { o.Config.Durability, d.Fsync = "relaxed", false }, "durability", Warning,
			[]string{"may destroy"}, "fsync = on"},
		"torn pages":      {func(_ *Options, d *Database) { d.FullPageWrites = false }, "durability", Warning, []string{"full_page_writes"}, "full_page_writes"},
		"few connections": {func(_ *Options, d *Database) { d.Used = 90 }, "connections", Warning, []string{"only 7 of 97", "16"}, "max_connections"},
		"its own connections": {func(_ *Options, d *Database) { d.Holder, d.Own, d.Used = "fanfare at 10.0.0.7", 12, 0 }, "connections", OK,
			[]string{"the server uses 12, other clients use 0"}, ""},
		"connections of nodes": {func(o *Options, d *Database) {
			o.Config.Node, d.Holder, d.Own, d.Used = "one", "fanfare at 10.0.0.7", 12, 0
		}, "connections", OK,
			[]string{"the nodes use 12, other clients use 0"}, ""},
		"few beside its own":     {func(_ *Options, d *Database) { d.Holder, d.Own, d.Used = "fanfare at 10.0.0.7", 5, 90 }, "connections", Warning, []string{"only 7 of 97"}, "max_connections"},
		"another server":         {func(_ *Options, d *Database) { d.Holder = "fanfare at 10.0.0.7" }, "database", Warning, []string{"fanfare at 10.0.0.7"}, "its own schema"},
		"clocks":                 {func(_ *Options, d *Database) { d.Ahead = -time.Minute }, "clock", Warning, []string{"-1m0s"}, "chrony"},
		"far away":               {func(_ *Options, d *Database) { d.RoundTrip = 40 * time.Millisecond }, "database", Warning, []string{"40ms"}, "closer"},
		"a standby":              {func(*Options, *Database) {}, "standby", OK, []string{"standby.example.org", "120ms"}, ""},
		"a standby far behind":   {func(o *Options, _ *Database) { standbyOf(o).Lag = time.Hour }, "standby", Warning, []string{"1h0m0s behind"}, "pg_stat_replication"},
		"a primary as standby":   {func(o *Options, _ *Database) { standbyOf(o).Standby = false }, "standby", Warning, []string{"not a standby"}, "db_reads"},
		"unencrypted":            {func(_ *Options, d *Database) { d.Encrypted = false }, "database", Warning, []string{"unencrypted"}, "verify-full"},
		"one host":               {func(o *Options, d *Database) { o.Config.Node, d.Hosts, d.SyncStandbys = "one", 1, 1 }, "standby", Warning, []string{"names one host"}, "target_session_attrs=read-write"},
		"no synchronous standby": {func(o *Options, d *Database) { o.Config.Node, d.Hosts = "one", 2 }, "standby", Warning, []string{"may lose acknowledged data"}, "synchronous_standby_names"},
		"unknown standbys":       {func(o *Options, d *Database) { o.Config.Node, d.Hosts, d.SyncHidden = "one", 2, true }, "standby", Warning, []string{"cannot read"}, "pg_read_all_stats"},
		"the clock of a node":    {func(o *Options, d *Database) { o.Config.Node, d.Ahead = "one", 1500*time.Millisecond }, "clock", Warning, []string{"1.5s", "less than 1s"}, "chrony"},
		"away": {func(o *Options, _ *Database) {
			o.Database = func(context.Context) (*Database, error) {
				return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "cannot connect to db.example.org", Hint: "start it"}
			}
		}, "database", Wrong, []string{"cannot connect"}, "start it"},
		"moved away": {func(o *Options, _ *Database) {
			o.Charge = func(context.Context) error {
				return &fanfare.Error{Code: fanfare.Conflict, Message: "it was moved to db2", Hint: "name db2"}
			}
		}, "start", Wrong, []string{"moved to db2"}, "name db2"},
	} {
		t.Run(name, func(t *testing.T) {
			o, d := healthy(t), &Database{Where: "fanfare@db.example.org:5432/fanfare", Version: "16.4", Number: 160004, Encoding: "UTF8", Schema: "fanfare", Owner: "somebody",
				SchemaSeen: 2, SchemaKnown: 2, MayCreate: true, MayChange: true, Days: 3, Bytes: 50e6, Fsync: true, FullPageWrites: true, MaxConnections: 97, Used: 5,
				Encrypted: true, RoundTrip: 250 * time.Microsecond}
			o.Config.DB, o.Config.DBReads, o.Config.DBConnections, o.Config.Durability = "postgres://db.example.org/fanfare", "postgres://standby.example.org/fanfare", 16, "fsync"
			o.Database = func(context.Context) (*Database, error) { return d, nil }
			reads := &Database{Where: "fanfare@standby.example.org:5432/fanfare", Standby: true, Lag: 120 * time.Millisecond}
			o.Reads = func(context.Context) (*Database, error) { return reads, nil }
			test.change(&o, d)
			r := &Report{}
			o.database(t.Context(), r, strings.Contains(name, "its own"))
			o.charge(t.Context(), r)
			list := slices.DeleteFunc(r.of(test.check), func(f Finding) bool { return f.Level != test.level })
			if len(list) != 1 {
				t.Fatalf("%+v", r.Findings)
			}
			f := list[0]
			if !strings.Contains(f.Mend, test.mend) || (f.Level != OK) != (f.Mend != "") {
				t.Errorf("%+v", f)
			}
			for _, want := range test.what {
				if !strings.Contains(f.What, want) {
					t.Errorf("%q is not in %q", want, f.What)
				}
			}
		})
	}
}

// standbyOf is what a look at the standby finds.
func standbyOf(o *Options) *Database {
	d, _ := o.Reads(context.Background())
	return d
}

func TestFilesHaveNoDatabaseFindings(t *testing.T) {
	o, r := healthy(t), &Report{}
	if o.database(t.Context(), r, false); len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
}
