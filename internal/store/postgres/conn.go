package postgres

import (
	"context"
	"maps"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store"
)

// A conn is a connection with its prepared statements and a buffer for outgoing messages.
type conn struct {
	pg       *pgconn.PgConn
	prepared map[*statement]bool
	params   params
	rows     rows
}

// connKey is the key under which a pooled connection stores its conn.
const connKey = "fanfare"

func connOf(held *pgxpool.Conn) *conn {
	pg := held.Conn().PgConn()
	if c, ok := pg.CustomData()[connKey].(*conn); ok {
		return c
	}
	c := &conn{pg: pg, prepared: map[*statement]bool{}}
	pg.CustomData()[connKey] = c
	return c
}

// A use describes what the connections of a pool are for.
type use struct {
	size     int32
	readOnly bool
	timeout  time.Duration // of one statement
}

// schema is the schema for all tables, unless the URL has a search_path.
const schema = "fanfare"

// parse parses a URL. Its errors do not contain the password.
func parse(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, &failure{told: &fanfare.Error{Code: fanfare.Invalid, Message: "the URL of the database is invalid",
			Hint: "use the form postgres://user@host:5432/database, and percent-encode special characters in the password (%40 for @)"}, cause: err}
	}
	if path, set := config.ConnConfig.RuntimeParams["search_path"]; set && !plainSchema.MatchString(path) {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the search_path in the URL of the database does not begin with a valid schema name",
			Hint: "use a name that consists of ASCII letters, digits and _, or enclose any other name in double quotes (search_path=%22My-Schema%22)"}
	}
	return config, nil
}

// plainSchema matches a search_path whose first name needs no quotes.
var plainSchema = regexp.MustCompile(`^\s*("([^"]|"")+"|[\pL_][\pL\pN_$]*)\s*(,|$)`)

// readOnly prevents a reading connection from writing by mistake.
const readOnly = "default_transaction_read_only = on"

// configure adds to the settings of the URL the settings for connections of one use.
func (o Options) configure(config *pgxpool.Config, of use) {
	c := config.ConnConfig
	preset := func(name, value string) {
		if _, ok := c.RuntimeParams[name]; !ok {
			c.RuntimeParams[name] = value
		}
	}
	preset("application_name", o.ApplicationName)
	preset("search_path", schema)
	c.RuntimeParams["client_encoding"] = "UTF8"
	maps.Copy(c.RuntimeParams, planSettings)
	c.RuntimeParams["statement_timeout"] = millis(of.timeout)
	c.RuntimeParams["lock_timeout"] = millis(lockTimeout)
	c.RuntimeParams["idle_in_transaction_session_timeout"] = millis(o.idleInTransaction())
	c.RuntimeParams["synchronous_commit"] = "on"
	if o.Durability == store.Relaxed || failpoint.Fault("postgres-without-sync") {
		c.RuntimeParams["synchronous_commit"] = "off"
	}
	if of.readOnly {
		// Set after connecting and not with the settings above: if the URL asks for a server that accepts writes
		// (target_session_attrs=read-write), a connection that is read-only by default is refused.
		c.AfterConnect = func(ctx context.Context, pg *pgconn.PgConn) error {
			_, err := pg.Exec(ctx, "SET "+readOnly).ReadAll()
			return err
		}
	}
	// keepAlive on the server's side: a backend whose client is gone releases its locks.
	c.RuntimeParams["tcp_keepalives_idle"] = seconds(keepAliveIdle)
	c.RuntimeParams["tcp_keepalives_interval"] = seconds(keepAliveInterval)
	c.RuntimeParams["tcp_keepalives_count"] = strconv.Itoa(keepAliveProbes)
	c.RuntimeParams["tcp_user_timeout"] = millis(peerTimeout)

	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{Timeout: c.ConnectTimeout, Control: control, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveProbes}}
	c.DialFunc = dialer.DialContext
	c.BuildContextWatcherHandler = func(pg *pgconn.PgConn) ctxwatch.Handler {
		return &cancelHandler{CancelRequestContextWatcherHandler: pgconn.CancelRequestContextWatcherHandler{Conn: pg, DeadlineDelay: time.Second}}
	}
	c.OnNotice = func(pg *pgconn.PgConn, n *pgconn.Notice) {
		o.Logger.Debug("notice from the database", "severity", n.Severity, "message", n.Message, "connection", pg.PID())
	}
	config.MaxConns, config.MinConns, config.MinIdleConns = of.size, 0, 0
	config.MaxConnLifetime, config.MaxConnLifetimeJitter = maxConnLifetime, maxConnLifetime/10
	config.MaxConnIdleTime = maxConnIdle
	config.PingTimeout = connectTimeout
}

func (o Options) idleInTransaction() time.Duration {
	if o.shared {
		return nodeIdleInTransaction
	}
	return idleInTransaction
}

// pool opens the connections of one use on demand.
func (db *DB) pool(ctx context.Context, url string, of use) (*pgxpool.Pool, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	db.options.configure(config, of)
	if url != db.options.ReadURL {
		config.AfterConnect = func(context.Context, *pgx.Conn) error {
			db.connected.Add(1)
			db.outage.over()
			return nil
		}
	}
	// Where possible, a dead connection is found before it is used: finding the result of an unanswered COMMIT is
	// expensive.
	config.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) { return alive(c.PgConn().Conn()), nil }
	return pgxpool.NewWithConfig(ctx, config)
}

func millis(d time.Duration) string  { return strconv.FormatInt(d.Milliseconds(), 10) }
func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
