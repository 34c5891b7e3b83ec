package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
)

// A Database is the result of examining a PostgreSQL database.
type Database struct {
	Where   string // user@host:port/database
	Version string // 16.4
	Number  int    // 160004

	Encoding string
	Standby  bool // it is in recovery
	ReadOnly bool // transactions are read-only by default
	Lag      time.Duration

	Schema               string
	SchemaSeen           int64 // last applied migration; 0: none
	SchemaKnown          int64 // last migration of this program
	MayCreate, MayChange bool  // permission to create the schema and to change its content
	Owner                string
	Days                 int // stored days
	Bytes                int64
	Holder               string // the server that uses it, or ""

	Fsync, FullPageWrites bool
	MaxConnections        int // without the connections reserved for superusers
	Own, Used             int // connections of the server that uses it; all other connections
	Encrypted, Local      bool
	RoundTrip             time.Duration
	Ahead                 time.Duration // how far its clock is ahead of ours
	Hosts                 int           // named in the URL
	SyncStandbys          int           // synchronous standbys that are connected
	SyncHidden            bool          // this user may not read the state of standbys
}

const (
	oldestDatabase = 150000
	// Limits for warnings: the round trip (each group of outcomes waits for one or two), the difference between the clocks, and the lag of a
	// standby.
	slowRoundTrip = 5 * time.Millisecond
	maxAhead      = 2 * time.Second
	maxLag        = time.Minute
)

// database checks the databases of db and db_reads. held reports whether a server uses the data directory.
func (o *Options) database(ctx context.Context, r *Report, held bool) {
	if o.Config.SQLite() {
		return
	}
	d := o.reach(ctx, r, "database", o.Database)
	if d == nil {
		return
	}
	if d.Number < oldestDatabase {
		r.wrong("database", "upgrade PostgreSQL to 15 or later", "%s is PostgreSQL %s, which is too old", d.Where, d.Version)
		return
	}
	switch {
	case d.Standby:
		r.wrong("database", "set db to the primary, and db_reads to the standby", "%s is a standby, which is read-only", d.Where)
	case d.ReadOnly:
		r.wrong("database", "find out why it was set, then reset default_transaction_read_only with ALTER DATABASE … RESET or ALTER ROLE … RESET, or in postgresql.conf",
			"%s is read-only for new connections (default_transaction_read_only = on): a server cannot start", d.Where)
	case d.Encoding != "UTF8":
		r.wrong("database", "recreate the database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", "%s has the encoding %s, but UTF8 is required", d.Where, d.Encoding)
	default:
		r.ok("database", "%s is PostgreSQL %s and responds in %v", d.Where, d.Version, d.RoundTrip.Round(10*time.Microsecond))
	}
	if d.RoundTrip > slowRoundTrip {
		r.warn("database", "move the server closer to the database", "a round trip takes %v, which delays each group of outcomes by that time", d.RoundTrip.Round(100*time.Microsecond))
	}
	if !d.Encrypted && !d.Local {
		r.warn("database", "add sslmode=verify-full to the URL, and sslrootcert if a private authority signed the certificate", "the server sends personal data to the database unencrypted")
	}
	o.schema(r, d)
	o.keeping(r, d, held)
	o.failover(r, d)
	if o.Config.DBReads != "" {
		o.standby(ctx, r)
	}
}

// reach examines a database, and reports if it cannot be reached.
func (o *Options) reach(ctx context.Context, r *Report, check string, look func(context.Context) (*Database, error)) *Database {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d, err := look(ctx)
	if err == nil {
		return d
	}
	mend := "check that PostgreSQL is running and can be reached from this machine"
	if e, ok := errors.AsType[*fanfare.Error](err); ok && e.Hint != "" {
		mend = e.Hint
	}
	r.wrong(check, mend, "%v", err)
	return nil
}

func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}

func (o *Options) schema(r *Report, d *Database) {
	switch {
	case d.SchemaSeen > d.SchemaKnown:
		r.wrong("schema", "use the newer version, or restore a backup taken before the upgrade", "%s was created by a newer version of Fanfare: it has version %d, but this program supports versions up to %d", d.Schema, d.SchemaSeen, d.SchemaKnown)
	case d.SchemaSeen == 0 && !d.MayCreate:
		r.wrong("schema", "CREATE SCHEMA "+d.Schema+" AUTHORIZATION the user of the URL", "the schema %s does not exist, and this user cannot create it", d.Schema)
	case d.SchemaSeen > 0 && !d.MayChange:
		r.wrong("schema", "connect as "+d.Owner, "the schema %s belongs to %s, and this user cannot change it", d.Schema, d.Owner)
	case d.SchemaSeen == 0:
		r.ok("schema", "%s is empty; the server creates its tables", d.Schema)
	case d.SchemaSeen < d.SchemaKnown:
		r.ok("schema", "%s has version %d; the server upgrades it to version %d", d.Schema, d.SchemaSeen, d.SchemaKnown)
	default:
		r.ok("schema", "%s has version %d, %s and %s", d.Schema, d.SchemaSeen, days(d.Days), size(d.Bytes))
	}
}

// keeping checks the durability settings of PostgreSQL and its other clients.
func (o *Options) keeping(r *Report, d *Database, held bool) {
	switch {
	case !d.Fsync && o.Config.Fsync():
		r.wrong("durability", "set fsync = on in postgresql.conf, or set durability to relaxed in Fanfare", "PostgreSQL runs with fsync = off: a power loss may destroy acknowledged data or the whole database")
	case !d.Fsync:
		r.warn("durability", "set fsync = on in postgresql.conf", "PostgreSQL runs with fsync = off: a power loss may destroy the database")
	case !d.FullPageWrites:
		r.warn("durability", "set full_page_writes = on, unless the file system prevents torn pages", "PostgreSQL runs with full_page_writes = off")
	case o.Config.Fsync():
		r.ok("durability", "PostgreSQL syncs, and the server waits for it")
	default:
		r.ok("durability", "PostgreSQL syncs, and the server does not wait for it (synchronous_commit = off)")
	}
	switch free := d.MaxConnections - d.Used; {
	case d.Holder != "" && !held && !o.Config.Clustered():
		r.warn("database", "stop that server before you start one here; each server needs its own schema or database", "another server already uses the database: %s", d.Holder)
	case free < o.Config.DBConnections:
		r.warn("connections", "increase max_connections in PostgreSQL, or decrease db_connections", "only %d of %d connections are free, but db_connections is %d", free, d.MaxConnections, o.Config.DBConnections)
	default:
		own := ""
		if d.Holder != "" {
			own = fmt.Sprintf("the server uses %d, ", d.Own)
			if o.Config.Clustered() {
				own = fmt.Sprintf("the nodes use %d, ", d.Own)
			}
		}
		r.ok("connections", "PostgreSQL allows %d connections; %sother clients use %d; db_connections is %d", d.MaxConnections, own, d.Used, o.Config.DBConnections)
	}
	if d.Ahead.Abs() > maxAhead {
		r.warn("clock", "run chrony or systemd-timesyncd on both machines", "the clock of the database differs from the clock of this machine by %v", d.Ahead.Round(100*time.Millisecond))
	}
}

// charge reports a database on which a server would not start. The other checks report
// errors in reading it.
func (o *Options) charge(ctx context.Context, r *Report) {
	if told, ok := errors.AsType[*fanfare.Error](o.Charge(ctx)); ok && told.Code == fanfare.Conflict {
		r.wrong("start", told.Hint, "a server cannot start: %s", told.Message)
	}
}

func (o *Options) standby(ctx context.Context, r *Report) {
	switch d := o.reach(ctx, r, "standby", o.Reads); {
	case d == nil:
	case !d.Standby:
		r.warn("standby", "set db_reads to a standby, or leave it empty", "%s is not a standby", d.Where)
	case d.Lag > maxLag:
		r.warn("standby", "check pg_stat_replication on the primary", "%s is %v behind: reports do not show newer data", d.Where, d.Lag.Round(time.Second))
	default:
		r.ok("standby", "%s is %v behind", d.Where, d.Lag.Round(time.Millisecond))
	}
}
