package mail_test

import (
	"context"
	"encoding/json"
	"testing"

	"fanfare.dev/fanfare/internal/jmap/mail"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/test/randommail"
)

func TestTheIndexChangesNoResultOfAQuery(t *testing.T) {
	plain, indexed := newWorldWith(t, mailbox.Options{}), newWorldWith(t, mailbox.Options{SearchTexts: mail.SearchTexts})
	r := randommail.New(2)
	add := func(n int) {
		for range n {
			message := mailbox.NewMessage{Mailbox: mailbox.InboxID, Content: r.Message()}
			for _, w := range []*world{plain, indexed} {
				if _, err := w.store.Append(context.Background(), w.id, []mailbox.NewMessage{message}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	add(60)
	for n := 1; n > 0; {
		var err error
		if n, err = indexed.store.Index(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	add(20) // they are not indexed
	found := 0
	for range 400 {
		quoted := func() string {
			pattern := r.Pattern()
			if r.IntN(2) == 0 {
				pattern = `"` + pattern + `"`
			}
			b, err := json.Marshal(pattern)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		var filter string
		switch name := []string{"text", "text", "body", "subject", "from", "to", "cc", "header"}[r.IntN(8)]; {
		case name == "header":
			filter = `{"header":["` + []string{"X-Note", "Subject", "To"}[r.IntN(3)] + `",` + quoted() + `]}`
		case r.IntN(4) == 0:
			filter = `{"operator":"NOT","conditions":[{"` + name + `":` + quoted() + `},{"body":` + quoted() + `}]}`
		default:
			filter = `{"` + name + `":` + quoted() + `}`
		}
		want := plain.call("Email/query", `{"filter":`+filter+`}`)["ids"]
		got := indexed.call("Email/query", `{"filter":`+filter+`}`)["ids"]
		if text(got) != text(want) {
			t.Fatalf("%s: %v with the index, %v without it", filter, got, want)
		}
		found += len(want.([]any))
	}
	if found < 400 {
		t.Errorf("%d messages were found: the test has lost its power", found)
	}
}
