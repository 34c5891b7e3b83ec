package postgres

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Facts are the results of Look.
type Facts struct {
	Where   string // user@host:port/database
	Version string // 16.4
	Number  int    // 160004

	Encoding string
	Standby  bool // it is in recovery
	ReadOnly bool // new connections are read-only by default
	Lag      time.Duration

	Schema               string
	SchemaSeen           int64 // last migration that was run; 0: none
	SchemaKnown          int64 // last migration that this program knows
	MayCreate, MayChange bool  // permission to create the schema and objects in it
	Owner                string
	Days                 int // number of stored days
	Bytes                int64
	Holder               string // the server that uses it, or ""

	Fsync, FullPageWrites bool
	MaxConnections        int // without connections reserved for superusers
	Own, Used             int // connections of the server that uses it; all others
	Encrypted, Local      bool
	RoundTrip             time.Duration
	Ahead                 time.Duration // how far its clock is ahead of ours
	Hosts                 int           // named in the URL
	SyncStandbys          int           // synchronous standbys that are connected
	SyncHidden            bool          // this user may not read the state of standbys
}

const (
	// lookTimeout limits each statement of Look.
	lookTimeout = 10 * time.Second
	// lookTrips is how many round trips are timed; the shortest counts.
	lookTrips = 5
)

// lookServer selects the facts that every user may read.
const lookServer = `SELECT current_setting('server_version'), current_setting('server_version_num')::int, current_setting('server_encoding'), pg_is_in_recovery(),
	CASE WHEN NOT pg_is_in_recovery() OR pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
		ELSE coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0) END::float8,
	(parse_ident(current_setting('search_path'), false))[1],
	current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
	current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - coalesce(current_setting('reserved_connections', true), '0')::int,
	(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()),
	coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
	inet_server_addr() IS NULL OR inet_server_addr() = inet_client_addr(),
	has_database_privilege(current_database(), 'CREATE'),
	(SELECT reset_val = 'on' FROM pg_settings WHERE name = 'default_transaction_read_only')`

// lookStandbys counts the synchronous standbys. The state is NULL for a user who may not read it.
const lookStandbys = `SELECT count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), coalesce(bool_or(sync_state IS NULL), false) FROM pg_stat_replication`

// hosts counts the hosts of a URL. pgx lists a host again for each TLS mode that it tries.
func hosts(config *pgx.ConnConfig) int {
	type host struct {
		name string
		port uint16
	}
	all := map[host]bool{{config.Host, config.Port}: true}
	for _, f := range config.Fallbacks {
		all[host{f.Host, f.Port}] = true
	}
	return len(all)
}

// lookSchema selects the facts about the schema $1; no row if it does not exist.
const lookSchema = `SELECT pg_get_userbyid(nspowner), pg_has_role(nspowner, 'USAGE'),
	(SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'm'))
	FROM pg_namespace n WHERE nspname = $1`

// Look examines the database at a URL without changing it. A server may use it at the same time.
func Look(ctx context.Context, url string) (*Facts, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	options, err := Options{ApplicationName: "fanfare doctor"}.withDefaults()
	if err != nil {
		return nil, err
	}
	options.configure(config, use{readOnly: true, timeout: lookTimeout})
	f, err := look(ctx, config.ConnConfig)
	if err != nil {
		return nil, newFailure(troubleOf(err), err)
	}
	return f, nil
}

func look(ctx context.Context, config *pgx.ConnConfig) (_ *Facts, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was only read
	f := &Facts{Where: describe(config), MayChange: true, RoundTrip: lookTimeout}
	for range lookTrips {
		var theirs time.Time
		begun := time.Now()
		if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&theirs); err != nil {
			return nil, err
		}
		if took := time.Since(begun); took < f.RoundTrip {
			f.RoundTrip, f.Ahead = took, theirs.Sub(begun.Add(took/2))
		}
	}
	var lag float64
	err = conn.QueryRow(ctx, lookServer).Scan(&f.Version, &f.Number, &f.Encoding, &f.Standby, &lag, &f.Schema,
		&f.Fsync, &f.FullPageWrites, &f.MaxConnections, &f.Used, &f.Encrypted, &f.Local, &f.MayCreate, &f.ReadOnly)
	if err != nil {
		return nil, err
	}
	f.Hosts = hosts(config)
	if err := conn.QueryRow(ctx, lookStandbys).Scan(&f.SyncStandbys, &f.SyncHidden); err != nil {
		return nil, err
	}
	f.Version, _, _ = strings.Cut(f.Version, " ") // without the name of the packager
	f.Lag = time.Duration(lag * float64(time.Second))
	if f.SchemaKnown, err = knownVersion(); err != nil {
		return nil, err
	}
	err = conn.QueryRow(ctx, lookSchema, f.Schema).Scan(&f.Owner, &f.MayChange, &f.Bytes)
	if errors.Is(err, pgx.ErrNoRows) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	f.MayCreate = f.MayChange // objects in the schema, which exists
	if !f.MayChange {
		return f, nil // no permission to read it either
	}
	if f.SchemaSeen, err = seenVersion(ctx, conn); err != nil || f.SchemaSeen == 0 {
		return f, err
	}
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM days").Scan(&f.Days); err != nil {
		return nil, err
	}
	if f.Holder, err = holder(ctx, conn); err != nil || f.Holder == "" {
		return f, err
	}
	if err := conn.QueryRow(ctx, lookOwn, uint32(ownerLock)).Scan(&f.Own); err != nil {
		return nil, err
	}
	f.Used -= f.Own
	return f, nil
}

// lookOwn counts the connections of the server or of the nodes that use the schema: those with the same properties as one that
// holds the lock. The nodes of a cluster share the lock, so a connection can match several holders.
const lookOwn = `SELECT count(DISTINCT a.pid) FROM pg_stat_activity a JOIN pg_stat_activity h
		ON (a.usename, a.datname, a.application_name) = (h.usename, h.datname, h.application_name) AND a.client_addr IS NOT DISTINCT FROM h.client_addr
	JOIN pg_locks l ON l.pid = h.pid ` + ownerHolds + ` AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()`

// knownVersion is the newest migration of this program.
func knownVersion() (last int64, err error) {
	files, err := fs.ReadDir(migrationFiles, "migrations")
	for _, file := range files {
		number, _, _ := strings.Cut(file.Name(), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, err
		}
		last = max(last, version)
	}
	return last, err
}
