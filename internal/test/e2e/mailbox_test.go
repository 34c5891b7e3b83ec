package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func TestMailboxesAreManagedByCommands(t *testing.T) {
	t.Parallel()
	s := inboxServer(t, "rate: unlimited", 150, "--imap-listen", "127.0.0.1:0", "--mailbox-quota", "1MB", "--mailbox-max-message", "20KB")
	const ada, one = "ada@example.org", "person7@example.org"
	if text := s.mustRun("", "mailbox", "create", "ada@Example.org"); !strings.Contains(text, "created "+ada) {
		t.Fatalf("created: %s", text)
	}
	if text := s.mustRun("", "mailbox", "create", ada); !strings.Contains(text, "exists") {
		t.Errorf("created again: %s", text)
	}
	box := func(address string) client.Mailbox {
		t.Helper()
		return into[client.Mailbox](t, s.mustRun("", "mailbox", "show", "--json", address))
	}
	if m := box(ada); m.Quota.MaxBytes != 1_000_000 || m.Quota.MaxMessages != 0 || m.Disabled || len(m.Folders) < 2 || m.Folders[0].Name != "INBOX" || m.Service != "news" {
		t.Errorf("the new mailbox is %+v", m)
	}
	if found := into[client.Subscriber](t, s.mustRun("", "subscriber", "get", "--json", box(ada).Subscriber)); len(found.Addresses) != 1 {
		t.Errorf("its subscriber is %+v", found)
	}
	s.http.refused(404, "GET", "/v1/mailboxes/"+one, "", "")
	event := s.http.publish(`{"title":"hello"}`)
	s.http.completed(event)
	if m := box(one); m.Quota.Bytes != 0 || m.Folders[0].Messages != 1 || m.Folders[0].Unread != 1 {
		t.Errorf("the mailbox with a message is %+v", m)
	}
	r := s.opened(ada)
	appendMail := func(size int) string {
		t.Helper()
		mail := "Subject: mine\r\n\r\n" + strings.Repeat("x", size)
		return r.tryAppend("INBOX", mail)
	}
	if got := appendMail(1000); got != "OK" {
		t.Fatalf("a small message: %s", got)
	}
	if got := appendMail(30_000); got == "OK" {
		t.Error("a message above mailbox_max_message was stored")
	}
	s.mustRun("", "mailbox", "quota", ada, "--max-size", "2KB", "--max-messages", "5")
	if m := box(ada); m.Quota.MaxBytes != 2000 || m.Quota.MaxMessages != 5 || m.Quota.Messages != 1 || m.Quota.Bytes < 1000 {
		t.Errorf("after the quota was set: %+v", m.Quota)
	}
	if got := appendMail(1500); got == "OK" {
		t.Error("a message above the quota was stored")
	}
	s.mustRun("", "mailbox", "quota", ada, "--max-size", "0")
	if got := appendMail(1500); got != "OK" {
		t.Errorf("without a quota: %s", got)
	}
	list := s.mustRun("", "mailbox", "list")
	if !strings.Contains(list, ada) || !strings.Contains(list, one) || strings.Contains(list, "person8@") {
		t.Errorf("the list is %s", list)
	}
	type page struct {
		Mailboxes []client.Mailbox
		Next      string
	}
	first := into[page](t, s.http.must(200, "GET", "/v1/mailboxes?limit=1", "", ""))
	rest := into[page](t, s.http.must(200, "GET", "/v1/mailboxes?limit=1&cursor="+first.Next, "", ""))
	if len(first.Mailboxes) != 1 || len(rest.Mailboxes) != 1 || first.Mailboxes[0].Address == rest.Mailboxes[0].Address {
		t.Errorf("the pages are %+v and %+v", first, rest)
	}

	s.mustRun("", "mailbox", "disable", one)
	if m := box(one); !m.Disabled {
		t.Errorf("disabled, it is %+v", m)
	}
	refused := into[client.Message](t, s.http.must(201, "POST", "/v1/messages", plain, `{"channel":"inbox","to":"`+one+`","content":{"subject":"a","text":"b"}}`))
	eventually(t, "the message is refused", func() bool {
		return into[client.Message](t, s.http.must(200, "GET", "/v1/messages/"+refused.ID, "", "")).Counts[fanfare.Failed] == 1
	})
	if got := s.run("", "mailbox", "password", "create", one); got.code == 0 {
		password, _, _ := strings.Cut(got.out, "\n")
		if status := s.tryLogin(one, password); status == "OK" {
			t.Error("a disabled mailbox was opened")
		}
	}
	s.mustRun("", "mailbox", "enable", one)
	if m := box(one); m.Disabled || m.Folders[0].Messages != 1 {
		t.Errorf("enabled, it is %+v", m)
	}
	if got := s.run("", "mailbox", "remove", one); got.code == 0 || !strings.Contains(got.err, "--yes") {
		t.Errorf("removed without --yes: %+v", got)
	}
	s.mustRun("", "mailbox", "remove", one, "--yes")
	s.http.refused(404, "GET", "/v1/mailboxes/"+one, "", "")
	for action, want := range map[string]int{"create": 1, "update": 4, "delete": 1} {
		if audit := s.http.must(200, "GET", "/v1/audit?kind=mailbox&action="+action, "", ""); strings.Count(audit, `"action":"`+action+`"`) != want || strings.Contains(audit, "@") {
			t.Errorf("the audit log of %s has %s", action, audit)
		}
	}
}
