package config

import (
	"net/url"
	"strings"
	"time"
)

// Limits of the settings of the database.
const (
	fewestConnections = 4
	mostConnections   = 1000
	shortestStatement = time.Second
	longestStatement  = time.Hour
)

func isPostgres(u *url.URL) bool { return u.Scheme == "postgres" || u.Scheme == "postgresql" }

// validateDatabase checks the database settings. Its errors never quote the URL, which may contain
// a password.
func (c *Config) validateDatabase(refuse func(key, hint, format string, args ...any)) {
	for _, of := range []struct{ key, value string }{{"db", c.DB}, {"db_reads", c.DBReads}} {
		if of.value != "" {
			if wrong, hint := wrongDatabase(of.value); wrong != "" {
				refuse(of.key, hint, "%s", wrong)
			}
		}
	}
	if c.DB == "" {
		for _, of := range []struct {
			key string
			set bool
		}{
			{"db_reads", c.DBReads != ""},
			{"db_password_file", c.DBPasswordFile != ""},
			{"db_connections", !isPreset("db_connections", c.DBConnections)},
			{"db_statement_timeout", !isPreset("db_statement_timeout", c.DBStatementTimeout)},
		} {
			if of.set {
				refuse(of.key, "set db to the URL of a PostgreSQL database, or remove "+of.key, "has no effect without db")
			}
		}
	}
	if c.DBConnections < fewestConnections || c.DBConnections > mostConnections {
		refuse("db_connections", "use 4 to 1000", "%d is out of range", c.DBConnections)
	}
	if c.DBStatementTimeout < shortestStatement || c.DBStatementTimeout > longestStatement {
		refuse("db_statement_timeout", "use 1s to 1h", "%v is out of range", c.DBStatementTimeout)
	}
}

// exampleDatabase is the hint for a URL that cannot be used.
const exampleDatabase = "use a URL such as postgres://fanfare@db.example.org:5432/fanfare"

// wrongDatabase returns why a text is not the URL of a PostgreSQL database, or "" if it is one.
func wrongDatabase(text string) (wrong, hint string) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "is not a URL", exampleDatabase + "; in a password, write # / ? % and @ as %23 %2F %3F %25 %40"
	case u.Scheme == "":
		return "is not a URL", exampleDatabase
	case !isPostgres(u):
		return "is not the URL of a PostgreSQL database: it begins with " + u.Scheme + ":", exampleDatabase + ", or leave db empty for SQLite in data_dir"
	case u.Opaque != "" || u.Fragment != "":
		return "is not the URL of a PostgreSQL database", exampleDatabase
	case strings.Trim(u.Path, "/") == "" && u.Query().Get("dbname") == "" && u.Query().Get("database") == "":
		return "does not contain a database name", exampleDatabase + ": add the database name at the end of the path"
	}
	return "", ""
}
