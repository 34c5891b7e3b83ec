package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Describe returns where a URL leads, without its password: user@host:port/database, and ?search_path= if the URL names a
// schema other than the default.
func Describe(url string) string {
	config, err := parse(url)
	if err != nil {
		return "database"
	}
	return describe(config.ConnConfig)
}

func describe(c *pgx.ConnConfig) string {
	hosts := []string{fmt.Sprintf("%s:%d", c.Host, c.Port)}
	for _, other := range c.Fallbacks { // each host is listed twice, with and without TLS
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

// Size returns the size of the schema on the database's disk in bytes.
func (db *DB) Size(ctx context.Context) (bytes int64, err error) {
	err = db.reading.QueryRow(ctx, "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'm')").Scan(&bytes)
	if err != nil {
		return 0, newFailure(troubleOf(err), err)
	}
	return bytes, nil
}

// About identifies a database.
type About struct {
	Where    string // result of Describe
	Version  string // version of PostgreSQL: 16.4
	Identity string // created with the schema; a copy of the schema has the same
}

// About asks the database for its version and identity.
func (db *DB) About(ctx context.Context) (About, error) {
	a := About{Where: describe(db.reading.Config().ConnConfig)}
	var identity int64
	err := db.reading.QueryRow(ctx, "SELECT value, current_setting('server_version') FROM meta WHERE name = 'identity'").Scan(&identity, &a.Version)
	if err != nil {
		return a, newFailure(troubleOf(err), err)
	}
	a.Version, _, _ = strings.Cut(a.Version, " ") // without the name of the packager
	a.Identity = strconv.FormatUint(uint64(identity), 16)
	return a, nil
}
