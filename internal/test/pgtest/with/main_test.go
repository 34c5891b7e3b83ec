package main

import (
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

func TestTheCommandFindsAServerAndGivesTheExitCode(t *testing.T) {
	t.Setenv(pgtest.Variable, "")
	code, err := with([]string{"sh", "-c", `[ -n "$FANFARE_TEST_POSTGRES_TEMPLATE" ] && case $FANFARE_TEST_POSTGRES in postgres://fanfare:*@127.0.0.1:*/fanfare?*) exit 3;; esac`})
	if code != 3 || err != nil {
		t.Errorf("ended with %d, %v", code, err)
	}
}

func TestAServerThatIsNamedIsUsed(t *testing.T) {
	t.Setenv(pgtest.Variable, "postgres://elsewhere/")
	code, err := with([]string{"sh", "-c", `test "$FANFARE_TEST_POSTGRES" = postgres://elsewhere/`})
	if code != 0 || err != nil {
		t.Errorf("ended with %d, %v", code, err)
	}
}

func TestWithoutACommandNothingIsStarted(t *testing.T) {
	if _, err := with(nil); err == nil {
		t.Error("no error")
	}
}

// By its identity a server knows its database, and refuses to take a stranger's for it.
func TestEachCopyHasTheWholeSchemaAndAnIdentityOfItsOwn(t *testing.T) {
	server := pgtest.Start(t, pgtest.Quick...)
	name, err := server.Template(fill)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(pgtest.Variable, server.URL)
	t.Setenv(pgtest.TemplateVariable, name)
	identities := map[string]bool{}
	for range 3 {
		at := pgtest.Prepared(t)
		facts, err := postgres.Look(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if facts.SchemaSeen != facts.SchemaKnown || facts.Days != 0 {
			t.Errorf("a copy has the schema %d of %d, and %d days", facts.SchemaSeen, facts.SchemaKnown, facts.Days)
		}
		identities[identity(t, at)] = true
	}
	pgtest.Execute(t, server.URL, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS true")
	identities[identity(t, strings.Replace(server.URL, "/fanfare?", "/"+name+"?", 1))] = true
	if len(identities) != 4 {
		t.Errorf("the template and three copies have the identities %v", identities)
	}
}

func identity(t *testing.T, at string) string {
	t.Helper()
	db, err := postgres.Open(t.Context(), at, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	about, err := db.About(t.Context())
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return about.Identity
}
