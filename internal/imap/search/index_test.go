package search_test

import (
	"testing"

	"fanfare.dev/fanfare/internal/imap/search"
	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/searchfilter"
	"fanfare.dev/fanfare/internal/test/randommail"
)

func TestTheIndexChangesNoResult(t *testing.T) {
	r := randommail.New(1)
	var builder searchfilter.Builder
	found, read := 0, 0
	const messages, patterns = 300, 40
	for range messages {
		data := r.Message()
		tree := mimetree.Parse(data)
		search.Texts(data, tree, builder.Add)
		filter := builder.Filter()
		for range patterns {
			text := r.Pattern()
			keys := []*syntax.Key{{Kind: syntax.KeyText, Text: text}, {Kind: syntax.KeyBody, Text: text}, {Kind: syntax.KeyHeader, Field: []string{"Subject", "from", "X-Note", "absent"}[r.IntN(4)], Text: text}}
			key := keys[r.IntN(3)]
			if r.IntN(3) == 0 {
				key = &syntax.Key{Kind: syntax.KeyOr, Keys: []*syntax.Key{key, {Kind: syntax.KeyNot, Keys: []*syntax.Key{keys[r.IntN(3)]}}}}
			}
			query := search.New(key, search.Limits{})
			m := &search.Message{Seq: 1, Message: &mailbox.Message{UID: 1}, Content: func() ([]byte, *mimetree.Part, error) { return data, tree, nil }}
			want, err := query.Match(m)
			if err != nil {
				t.Fatal(err)
			}
			wasRead := 0
			m.Content = func() ([]byte, *mimetree.Part, error) { wasRead = 1; return data, tree, nil }
			m.MayContain = func(n searchfilter.Pattern) (bool, error) { return filter.MayContain(n), nil }
			got, err := query.Match(m)
			if err != nil || got != want {
				t.Fatalf("%+v of %q: %v with the index, %v without it; %v", *key, data, got, want, err)
			}
			read += wasRead
			if want {
				found++
			}
		}
	}
	if n := messages * patterns; found < n/20 || read > n*9/10 {
		t.Errorf("%d of %d searches found something and %d read the message: the test has lost its power", found, n, read)
	}
}
