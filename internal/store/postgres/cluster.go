package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"fanfare.dev/fanfare"
)

// LeaderLease is the name of the lease for the duties that one node of a cluster has at a time.
const LeaderLease = "leader"

// A Cluster is the connection of one node to the tables that the nodes of a cluster share: leases, nodes and server_keys.
// It holds the ownership lock in shared mode, so that a server outside the cluster cannot use the database. All times
// are those of the database's clock.
type Cluster struct {
	options Options
	config  *pgx.ConnConfig

	mu   sync.Mutex
	conn *pgx.Conn // nil after a failure
}

// A Node is a node of a cluster.
type Node struct {
	Name     string
	Instance int64 // random number of the process
	URL      string
	Version  string
	Roles    []string // of the setting roles
	Started  time.Time
	Seen     time.Time     // of its last heartbeat
	Silent   time.Duration // since then
	Skew     time.Duration // of its clock, ahead of the database's
}

// OpenCluster connects a node, and creates the schema if it is missing.
func OpenCluster(ctx context.Context, url string, options Options) (*Cluster, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	options.shared = true
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	options.configure(config, use{timeout: options.StatementTimeout})
	c := &Cluster{options: options, config: config.ConnConfig}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	o := &owner{db: &DB{options: options}, config: c.config, conn: c.conn}
	err = o.suitable()
	if err == nil {
		err = migrateCluster(ctx, c.conn)
	}
	if err != nil {
		return nil, errors.Join(c.fail(err), c.Close())
	}
	return c, nil
}

// migrateCluster creates the tables of the cluster if the schema does not have them. An existing cluster is migrated by the
// node that leads.
func migrateCluster(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('leases') IS NOT NULL AND to_regclass('server_keys') IS NOT NULL").Scan(&exists); err != nil || exists {
		return err
	}
	return migrate(ctx, conn)
}

func (c *Cluster) connect(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, c.config)
	if err != nil {
		return newFailure(troubleOf(err), err)
	}
	o := &owner{db: &DB{options: c.options}, conn: conn}
	for since := time.Now(); ; {
		locked, err := o.lock(ctx)
		if err == nil && locked {
			c.conn = conn
			return nil
		}
		if err == nil && time.Since(since) > takeOverWait {
			err = o.held(ctx)
		}
		if err == nil {
			err = sleep(ctx, takeOverPoll)
		}
		if err != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // the lock goes with it
			return c.fail(err)
		}
	}
}

// use runs fn with the connection, which it makes anew after a failure.
func (c *Cluster) use(ctx context.Context, fn func(*pgx.Conn) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil || c.conn.IsClosed() {
		if err := c.connect(ctx); err != nil {
			return err
		}
	}
	return c.fail(fn(c.conn))
}

// fail classifies an error, and closes the connection unless the database itself reported the error.
func (c *Cluster) fail(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fanfare.Error](err); ok {
		return err
	}
	if c.conn != nil && !told(err) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.conn.Close(ctx)
		c.conn = nil
	}
	return newFailure(troubleOf(err), err)
}

// Close ends the connection. Leases stay until they expire.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil || c.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	return c.conn.Close(ctx)
}

// Register stores a node. It fails with Conflict if another process with the same name was seen within ttl.
func (c *Cluster) Register(ctx context.Context, n *Node, ttl time.Duration) error {
	return c.use(ctx, func(conn *pgx.Conn) error {
		var old bool // the node that leads has not migrated the schema to this version yet
		if err := conn.QueryRow(ctx, "SELECT NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'nodes'::regclass AND attname = 'roles')").Scan(&old); err != nil {
			return err
		}
		tag, err := conn.Exec(ctx, `INSERT INTO nodes (name, instance, url, version, started, seen, skew) VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp(), 0)
			ON CONFLICT (name) DO UPDATE SET instance = $2, url = $3, version = $4, started = clock_timestamp(), seen = clock_timestamp(), skew = 0
			WHERE nodes.instance = $2 OR nodes.seen < clock_timestamp() - $5::interval`, n.Name, n.Instance, n.URL, n.Version, ttl)
		if err == nil && tag.RowsAffected() > 0 && !old {
			_, err = conn.Exec(ctx, "UPDATE nodes SET roles = $2 WHERE name = $1", n.Name, strings.Join(n.Roles, ","))
		}
		if err != nil || tag.RowsAffected() > 0 {
			return err
		}
		var url string
		if err := conn.QueryRow(ctx, "SELECT url FROM nodes WHERE name = $1", n.Name).Scan(&url); err != nil {
			return err
		}
		return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/node", Message: fmt.Sprintf("another process with the node name %q is running, at %s", n.Name, url),
			Hint: "give each node its own name"}
	})
}

// errRenamed is the error of a process whose node name another process has taken.
var errRenamed = &fanfare.Error{Code: fanfare.Conflict, Pointer: "/node", Message: "another process has registered the name of this node",
	Hint: "give each node its own name"}

// Heartbeat updates the row of a node. now is the time on the clock of the node.
func (c *Cluster) Heartbeat(ctx context.Context, name string, instance int64, now time.Time) error {
	return c.use(ctx, func(conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, `UPDATE nodes SET seen = clock_timestamp(), skew = (extract(epoch FROM $3::timestamptz - clock_timestamp()) * 1e9)::bigint
			WHERE name = $1 AND instance = $2`, name, instance, now)
		if err == nil && tag.RowsAffected() == 0 {
			err = errRenamed
		}
		return err
	})
}

// Leave marks a node as silent, so that its name is free.
func (c *Cluster) Leave(ctx context.Context, name string, instance int64) error {
	return c.use(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "UPDATE nodes SET seen = 'epoch' WHERE name = $1 AND instance = $2", name, instance)
		return err
	})
}

// A Holder is the node that holds a lease. The zero Holder means that no node ever held it.
type Holder struct {
	Node  string
	URL   string
	Epoch int64
	Held  bool // the lease has not expired
}

// Holder returns the holder of a lease.
func (c *Cluster) Holder(ctx context.Context, lease string) (h Holder, err error) {
	err = c.use(ctx, func(conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, `SELECT l.node, coalesce(n.url, ''), l.epoch, l.until > clock_timestamp() FROM leases l LEFT JOIN nodes n ON n.name = l.node WHERE l.name = $1`, lease).
			Scan(&h.Node, &h.URL, &h.Epoch, &h.Held)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return h, err
}

// Acquire acquires a lease that has expired, and returns its new epoch, or 0 if another node was faster.
func (c *Cluster) Acquire(ctx context.Context, lease, node string, length time.Duration) (epoch int64, err error) {
	err = c.use(ctx, func(conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, `INSERT INTO leases (name, node, epoch, until) VALUES ($1, $2, 1, clock_timestamp() + $3::interval)
			ON CONFLICT (name) DO UPDATE SET node = $2, epoch = leases.epoch + 1, until = clock_timestamp() + $3::interval WHERE leases.until <= clock_timestamp()
			RETURNING epoch`, lease, node, length).Scan(&epoch)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return epoch, err
}

// Renew extends a lease unless another node has acquired it, and reports whether the node still holds it.
func (c *Cluster) Renew(ctx context.Context, lease, node string, epoch int64, length time.Duration) (held bool, err error) {
	err = c.use(ctx, func(conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, "UPDATE leases SET until = clock_timestamp() + $4::interval WHERE name = $1 AND node = $2 AND epoch = $3", lease, node, epoch, length)
		held = tag.RowsAffected() > 0
		return err
	})
	return held, err
}

// Release ends a lease.
func (c *Cluster) Release(ctx context.Context, lease, node string, epoch int64) error {
	_, err := c.Renew(ctx, lease, node, epoch, 0)
	return err
}

// Nodes returns all nodes that were seen within some time.
func (c *Cluster) Nodes(ctx context.Context, within time.Duration) (nodes []Node, err error) {
	err = c.use(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT name, instance, url, version, started, seen, (extract(epoch FROM clock_timestamp() - seen) * 1e9)::bigint, skew, coalesce(to_jsonb(nodes)->>'roles', 'all') FROM nodes
			WHERE seen > clock_timestamp() - $1::interval ORDER BY name`, within)
		if err != nil {
			return err
		}
		nodes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n Node, err error) {
			var roles string
			err = row.Scan(&n.Name, &n.Instance, &n.URL, &n.Version, &n.Started, &n.Seen, &n.Silent, &n.Skew, &roles)
			n.Roles = strings.Split(roles, ",")
			return n, err
		})
		return err
	})
	return nodes, err
}

// SealedKeys returns the keys that the nodes share, encrypted, by name.
func (c *Cluster) SealedKeys(ctx context.Context) (keys map[string][]byte, err error) {
	err = c.use(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT name, sealed FROM server_keys")
		if err != nil {
			return err
		}
		keys = map[string][]byte{}
		var name string
		var sealed []byte
		_, err = pgx.ForEachRow(rows, []any{&name, &sealed}, func() error { keys[name] = sealed; return nil })
		return err
	})
	return keys, err
}

// ReplaceSealedKey stores a key instead of the one with its name.
func (c *Cluster) ReplaceSealedKey(ctx context.Context, name string, sealed []byte) error {
	return c.use(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "INSERT INTO server_keys (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed", name, sealed)
		return err
	})
}

// AddSealedKey stores a key unless one with its name exists.
func (c *Cluster) AddSealedKey(ctx context.Context, name string, sealed []byte) error {
	return c.use(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "INSERT INTO server_keys (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, sealed)
		return err
	})
}
