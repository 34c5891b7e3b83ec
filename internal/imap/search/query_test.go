package search_test

import (
	"errors"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/imap/search"
	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
)

// query compiles the keys of a SEARCH command.
func query(t testing.TB, keys string) *search.Query {
	t.Helper()
	c, err := syntax.Parse([]byte("a SEARCH " + keys))
	if err != nil {
		t.Fatal(err)
	}
	return search.New(c.Args.(*syntax.Search).Key, search.Limits{Now: time.Unix(1e9, 0), LastSeq: 9, LastUID: 90, Saved: syntax.NumSet{{From: 10, To: 20}}})
}

func TestContentsAreReadOnlyIfTheyAreNeeded(t *testing.T) {
	for keys, want := range map[string]int{"ALL": 0, "SUBJECT x SEEN": 0, "OR TEXT x 1": 0, "OR SEEN BODY hello": 1, "NOT SUBJECT y": 1, "SUBJECT x BODY hello TEXT hello": 1, "$ UID 10 LARGER 1": 0} {
		read := 0
		m := &search.Message{Seq: 1, Message: &mailbox.Message{UID: 10, Size: 5}, Content: func() ([]byte, *mimetree.Part, error) {
			read++
			data := []byte("Subject: x\r\n\r\nhello")
			return data, mimetree.Parse(data), nil
		}}
		if _, err := query(t, keys).Match(m); err != nil || read != want {
			t.Errorf("%s: the content was read %d times, want %d; %v", keys, read, want, err)
		}
	}
}

func TestMissingContentsMatchNothingAndErrorsAreReturned(t *testing.T) {
	gone := &search.Message{Seq: 1, Message: &mailbox.Message{UID: 1}, Content: func() ([]byte, *mimetree.Part, error) { return nil, nil, nil }}
	if ok, err := query(t, "BODY x").Match(gone); ok || err != nil {
		t.Errorf("a message without content: %v, %v", ok, err)
	}
	broken := errors.New("broken")
	failing := &search.Message{Seq: 1, Message: &mailbox.Message{UID: 1}, Content: func() ([]byte, *mimetree.Part, error) { return nil, nil, broken }}
	for _, keys := range []string{"BODY x", "NOT BODY x", "OR BODY x ALL BODY y", "NOT (SUBJECT a)"} {
		if ok, err := query(t, keys).Match(failing); keys != "OR BODY x ALL BODY y" && (ok || !errors.Is(err, broken)) {
			t.Errorf("%s: %v, %v", keys, ok, err)
		}
	}
}

func TestSentDatesAreThoseThatTheMessageShows(t *testing.T) {
	for date, want := range map[string]bool{
		"Thu, 9 Jan 2020 23:30:00 -0500": true, "Thu, 9 Jan 2020 00:30:00 +0900": true, "9 Jan 2020 12:00 GMT": true, "Fri, 10 Jan 2020 00:00:00 +0000": false, "nonsense": false, "": false,
	} {
		data := []byte("Date: " + date + "\r\n\r\n")
		m := &search.Message{Seq: 1, Message: &mailbox.Message{UID: 1}, Content: func() ([]byte, *mimetree.Part, error) { return data, mimetree.Parse(data), nil }}
		if got, err := query(t, "SENTON 9-Jan-2020").Match(m); err != nil || got != want {
			t.Errorf("%q: %v, %v", date, got, err)
		}
	}
}

// FuzzQuery evaluates arbitrary keys on arbitrary messages. NOT must invert the result.
func FuzzQuery(f *testing.F) {
	f.Add("OR (SUBJECT \"x\" NOT BODY y) HEADER From a", []byte("Subject: =?utf-8?q?x?=\r\nFrom: a\r\n\r\ny"))
	f.Add("SENTBEFORE 1-Jan-2020 TEXT a", []byte("Date: Mon, 2 Jan 2006 15:04:05 -0700\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\na\r\n--b--"))
	f.Add("KEYWORD a UID 1:* 2 $ SMALLER 3 YOUNGER 5", []byte("\xff"))
	f.Fuzz(func(t *testing.T, keys string, data []byte) {
		c, err := syntax.Parse([]byte("a SEARCH " + keys))
		if err != nil {
			return
		}
		key := c.Args.(*syntax.Search).Key
		m := &search.Message{Seq: 2, Message: &mailbox.Message{UID: 3, Size: int64(len(data)), Keywords: "a B"}, Content: func() ([]byte, *mimetree.Part, error) { return data, mimetree.Parse(data), nil }}
		is, err := search.New(key, search.Limits{LastSeq: 5, LastUID: 6}).Match(m)
		if err != nil {
			t.Fatal(err)
		}
		isNot, err := search.New(&syntax.Key{Kind: syntax.KeyNot, Keys: []*syntax.Key{key}}, search.Limits{LastSeq: 5, LastUID: 6}).Match(m)
		if err != nil || is == isNot {
			t.Fatalf("%q matches: %v, and NOT: %v, %v", keys, is, isNot, err)
		}
	})
}
