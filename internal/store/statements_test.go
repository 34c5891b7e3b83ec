package store_test

import (
	"maps"
	"testing"

	"fanfare.dev/fanfare/internal/store"
)

func TestStatementsAreCutAtTheirNames(t *testing.T) {
	got := store.ParseStatements(`-- What the file is for.
-- name: first
SELECT a, b
  FROM t

-- About the next one.
-- name: second
-- idempotent: by its key
-- and a word on how
INSERT INTO t (a) VALUES (?)
-- name: third
DELETE FROM t`)
	want := store.Statements{
		"first":  {Text: "SELECT a, b FROM t"},
		"second": {Text: "INSERT INTO t (a) VALUES (?)", Idempotent: true},
		"third":  {Text: "DELETE FROM t"},
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
