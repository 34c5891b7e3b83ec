package postgres

import (
	"errors"
	"net/url"
	"testing"

	"fanfare.dev/fanfare"
)

func TestASearchPathHasToNameASchema(t *testing.T) {
	t.Parallel()
	for path, good := range map[string]bool{
		"fanfare": true, "Fanfare_2": true, "ünïted": true, `"My-Schema"`: true, `"a""b", public`: true, "one,two": true,
		"My-Schema": false, "2nd": false, "": false, `"open`: false, "a b": false, "a;drop": false, `""`: false,
	} {
		_, err := parse("postgres://ada@db.example.org/news?" + url.Values{"search_path": {path}}.Encode())
		if (err == nil) != good || !good && fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

func TestAConnectionErrorIsOneLineWithItsCause(t *testing.T) {
	t.Parallel()
	const head = "failed to connect to `user=ada database=news`:\n\t"
	const noTLS, noPassword = "db:5432: tls error: server refused TLS connection", "db:5432: failed SASL auth: password authentication failed"
	for text, want := range map[string]string{
		head + noTLS + "\n\t" + noPassword: "failed to connect to `user=ada database=news`: " + noPassword,
		head + noTLS:                       "failed to connect to `user=ada database=news`: " + noTLS,
		head + "db:5432: dial error: a\n\tdb:5432: dial error: a":     "failed to connect to `user=ada database=news`: db:5432: dial error: a",
		head + "one:5432: dial error: a\n\ttwo:5432: dial error: b\n": "failed to connect to `user=ada database=news`: one:5432: dial error: a; two:5432: dial error: b",
		"ERROR: permission denied":                                    "ERROR: permission denied",
	} {
		if got := oneLine(errors.New(text)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
