package postgres

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// encrypted is a URL with another way to verify the server.
func encrypted(t *testing.T, at, mode, root string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = url.Values{"sslmode": {mode}, "sslrootcert": {root}}.Encode()
	return u.String()
}

// hint is what a user is told to do.
func hint(err error) string {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		return e.Hint
	}
	return ""
}

func TestAnEncryptedConnectionIsVerifiedAsTheURLAsks(t *testing.T) {
	server := pgtest.Start(t, pgtest.Quick...)
	require := strings.Replace(server.URL, "sslmode=disable", "sslmode=require", 1)
	if _, err := Look(t.Context(), require); err == nil || !strings.Contains(err.Error(), "refused TLS") || !strings.Contains(hint(err), "ssl = on") {
		t.Errorf("a server without a certificate: %v", err)
	}
	root := server.Encrypt()
	other := pgtest.Start(t, pgtest.Quick...).Encrypt()
	for name, of := range map[string]struct {
		url       string
		encrypted bool
		wrong     string
	}{
		"require":                 {require, true, ""},
		"verify-full":             {encrypted(t, server.URL, "verify-full", root), true, ""},
		"disable":                 {server.URL, false, ""},
		"verify-full, other CA":   {encrypted(t, server.URL, "verify-full", other), false, "certificate signed by unknown authority"},
		"verify-ca, other CA":     {encrypted(t, server.URL, "verify-ca", other), false, "certificate signed by unknown authority"},
		"verify-full, other name": {strings.Replace(encrypted(t, server.URL, "verify-full", root), "127.0.0.1", "localhost", 1), false, "localhost"},
	} {
		facts, err := Look(t.Context(), of.url)
		switch {
		case of.wrong != "" && (err == nil || !strings.Contains(err.Error(), of.wrong)):
			t.Errorf("%s: got %v", name, err)
		case of.wrong != "" && !strings.Contains(hint(err), "sslrootcert"):
			t.Errorf("%s: %q does not say what to do", name, hint(err))
		case of.wrong == "" && (err != nil || facts.Encrypted != of.encrypted):
			t.Errorf("%s: %+v, %v", name, facts, err)
		}
	}
}

// The ways in which a connection goes are others with TLS: its end is told within
// it, and what lies between is not bytes of PostgreSQL.
func TestATransactionIsKeptOnceWhereverAnEncryptedConnectionIsCut(t *testing.T) {
	server := pgtest.Start(t, pgtest.Quick...)
	cut := newCutter(t, encrypted(t, server.URL, "verify-full", server.Encrypt()))
	db := open(t, cut.url, Options{Durability: store.Relaxed})
	part, err := db.Day(t.Context(), today, true)
	if err != nil {
		t.Fatal(err)
	}
	want := counted(t, part)
	opened := db.Stats().Losses
	for range 20 {
		if err := part.Write(t.Context(), count); err != nil {
			t.Fatal(err)
		}
		want++
	}
	if lost := db.Stats().Losses; lost != opened {
		t.Errorf("%d connections were lost, and nobody cut one", lost-opened)
	}
	for _, of := range []direction{toServer, fromServer} {
		for at, made := 0, true; made; at += 7 {
			cut.after(of, at)
			if err := part.Write(t.Context(), count); err != nil {
				t.Fatalf("cut after %d bytes: %v", at, err)
			}
			made = cut.disarm()
			want++
			if got := counted(t, part); got != want {
				t.Fatalf("cut after %d bytes: counted %d, want %d", at, got, want)
			}
		}
	}
	t.Logf("%d cuts", cut.cuts)
}
