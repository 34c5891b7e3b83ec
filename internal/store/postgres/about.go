package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Describe says where a URL leads, without its password: user@host:port/database, with
// ?search_path= where it names a schema other than the default.
func Describe(url string) string {
	config, err := parse(url)
	if err != nil {
		return "database"
	}
	return describe(config.ConnConfig)
}

func describe(c *pgx.ConnConfig) string {
	hosts := []string{fmt.Sprintf("%s:%d", c.Host, c.Port)}
	for _, other := range c.Fallbacks { // a host is there twice, with and without TLS
		if next := fmt.Sprintf("%s:%d", other.Host, other.Port); !slices.Contains(hosts, next) {
			hosts = append(hosts, next)
		}
	}
	where := c.User + "@" + strings.Join(hosts, ",") + "/" + c.Database
	if path := c.RuntimeParams["search_path"]; path != "" && path != schema {
		where += "?search_path=" + path
	}
	return where
}

// Size is how many bytes the schema has on the disk of the database.
func (db *DB) Size(ctx context.Context) (bytes int64, err error) {
	err = db.reading.QueryRow(ctx, "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'm')").Scan(&bytes)
	if err != nil {
		return 0, newFailure(troubleOf(err), err)
	}
	return bytes, nil
}

// About is what a database is.
type About struct {
	Where    string // as Describe says it
	Version  string // of PostgreSQL: 16.4
	Identity string // made with the schema, and kept by a copy of it
}

// About asks the database what it is.
func (db *DB) About(ctx context.Context) (About, error) {
	a := About{Where: describe(db.reading.Config().ConnConfig)}
	var identity int64
	err := db.reading.QueryRow(ctx, "SELECT value, current_setting('server_version') FROM meta WHERE name = 'identity'").Scan(&identity, &a.Version)
	if err != nil {
		return a, newFailure(troubleOf(err), err)
	}
	a.Version, _, _ = strings.Cut(a.Version, " ") // of who built it
	a.Identity = strconv.FormatUint(uint64(identity), 16)
	return a, nil
}
