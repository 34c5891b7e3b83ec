package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Variable names the environment variable with the URL of a server that runs,
// for tests that need none of their own. Its account may create databases.
const Variable = "FANFARE_TEST_POSTGRES"

// Quick are settings for tests that no loss of power is about.
var Quick = []string{"fsync=off", "full_page_writes=off"}

// shared is the server of this process, which stops with the process. The variable keeps it reachable: if the pipe to the
// janitor were garbage-collected, the janitor would stop the server.
var shared = sync.OnceValues(func() (*Cluster, error) {
	if at := os.Getenv(Variable); at != "" {
		return &Cluster{URL: at}, nil
	}
	return Launch(Quick...)
})

// TB is the common interface of tests, benchmarks and property tests.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// Database returns the URL of a new, empty database, which is dropped at the end of the test. It is on the server that
// Variable names, or on a server for this process.
func Database(t TB) string {
	t.Helper()
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return databaseOn(t, server.URL)
}

func databaseOn(t TB, server string) string {
	t.Helper()
	return newDatabase(t, server, "CREATE DATABASE %s")
}

// newDatabase creates a database by a statement with a place for its name.
func newDatabase(t TB, server, create string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	if err := execute(server, fmt.Sprintf(create, name)); err != nil {
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		// Not WITH (FORCE): that ends a vacuum too, for which it takes a superuser.
		if err := execute(server, terminate+" AND datname = '"+name+"'", "DROP DATABASE "+name); err != nil {
			t.Errorf("drop the database of the test: %v", err)
		}
	})
	at, err := inDatabase(server, name)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// inDatabase is the URL of another database of a server.
func inDatabase(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// terminate ends all other connections of the same account.
const terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()"

// execute runs statements one by one on a connection of their own.
func execute(at string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // all was answered
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
