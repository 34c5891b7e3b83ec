package imap_test

import "testing"

func TestASearchForASubjectFindsTheMessagesThatHaveItNow(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.login(1), w.login(2)
	for _, c := range []*client{a, b} {
		c.ok("APPEND INBOX {=Subject: =?utf-8?q?p=C3=A9ch=C3=A9?=\\r\\n\\r\\nSubject: other=}")
		c.ok("APPEND INBOX {=Subject: other\\r\\n\\r\\n1=}")
		c.ok("SELECT INBOX")
	}
	want := func(c *client, answer, keys string) {
		t.Helper()
		if untagged, _ := c.ok("UID SEARCH %s", keys); untagged[0] != answer {
			t.Errorf("%s: %q, want %q", keys, untagged, answer)
		}
	}
	for range 2 {
		want(a, "* SEARCH 2", "SUBJECT other")
		want(a, "* SEARCH 1", "HEADER Subject ch")
		want(b, "* SEARCH 1", "NOT SUBJECT other")
		want(b, "* SEARCH 1", "BODY other SUBJECT p")
	}
	a.ok("STORE 2 +FLAGS (\\Deleted)")
	a.ok("EXPUNGE")
	want(a, "* SEARCH", "SUBJECT other")
	a.ok("APPEND INBOX {=Subject: other\\r\\n\\r\\n2=}")
	want(a, "* SEARCH 3", "SUBJECT other")
	want(b, "* SEARCH 2", "SUBJECT other")
}
