package imap_test

import (
	"strings"
	"testing"
)

func TestTheSessionsOfADisabledAccountEnd(t *testing.T) {
	w := newWorld(t, nil)
	waits, idles, other := w.login(1), w.login(1), w.login(2)
	idles.ok("SELECT INBOX")
	idles.send("i IDLE\r\n")
	if line := idles.line(); !strings.HasPrefix(line, "+ ") {
		t.Fatalf("IDLE begins with %q", line)
	}
	list, err := w.store.AccountsOf(t.Context(), address(1))
	must(t, err)
	must(t, w.store.SetDisabled(t.Context(), list[0].ID, true))
	for name, c := range map[string]*client{"a session that waits": waits, "IDLE": idles} {
		if rest := c.ended(); len(rest) == 0 || !strings.HasPrefix(rest[0], "* BYE the account was disabled") {
			t.Errorf("%s ends with %q", name, rest)
		}
	}
	other.ok("NOOP")
	w.dial().refused("NO", "LOGIN %s %q", address(1), w.password)
}
