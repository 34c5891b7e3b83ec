package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/searchfilter"
)

// wholeText takes the message as it is as its only text.
func wholeText(message []byte, _ *mimetree.Part, add func(string)) { add(string(message)) }

var indexed = mailbox.Options{SearchTexts: wholeText}

// index runs the indexer until the queue is empty.
func (w *world) index(t testing.TB) {
	t.Helper()
	for {
		n, err := w.Index(t.Context())
		must(t, err)
		if n == 0 {
			return
		}
	}
}

// excluded returns which messages a search for a text need not read.
func (w *world) excluded(t testing.TB, list []mailbox.Message, text string) (excluded []bool) {
	t.Helper()
	r := w.SearchReader(len(list), func(i int) mailbox.ContentID { return list[i].Content })
	for i := range list {
		may, err := r.MayContain(t.Context(), i, searchfilter.NewPattern(text))
		must(t, err)
		excluded = append(excluded, !may)
	}
	return excluded
}

// wantRows checks how many contents wait in the queue, and how many have filters.
func (w *world) wantRows(t testing.TB, when string, queued, indexed int) {
	t.Helper()
	if q, f := w.rows(t, "search_queue"), w.rows(t, "search_filters"); q != int64(queued) || f != int64(indexed) {
		t.Errorf("%s: %d contents are in the queue and %d have filters, want %d and %d", when, q, f, queued, indexed)
	}
}

func TestMessagesAreExcludedOnceTheyAreIndexed(t *testing.T) {
	onStore(t, indexed, func(t *testing.T, w *world) {
		a := w.account(t, 1)
		messages := make([]mailbox.NewMessage, 600) // more than the reader reads at once
		for i := range messages {
			messages[i] = mailbox.NewMessage{Mailbox: mailbox.InboxID, Content: mail("greetings", fmt.Sprintf("number%d.", i))}
		}
		list, err := w.Append(t.Context(), a, messages)
		must(t, err)
		count := func(all []bool) (n int) {
			for _, is := range all {
				if is {
					n++
				}
			}
			return n
		}
		if n := count(w.excluded(t, list, "absent words")); n != 0 {
			t.Errorf("%d messages are excluded before they are indexed", n)
		}
		w.wantRows(t, "before", len(list), 0)
		w.index(t)
		if n := count(w.excluded(t, list, "absent words")); n != len(list) {
			t.Errorf("%d of %d messages are excluded", n, len(list))
		}
		all := w.excluded(t, list, "NUMBER7.")
		if all[7] || count(all) < len(list)/2 {
			t.Errorf("number7. is excluded: %v; %d in all", all[7], count(all))
		}
		if n := count(w.excluded(t, list, "Greetings")) + count(w.excluded(t, list, "xy")) + count(w.excluded(t, list, "")); n != 0 {
			t.Errorf("%d messages are excluded that contain the text, or by a short text", n)
		}
		w.wantRows(t, "after", 0, len(list))
	})
}

func TestAFilterLivesAsLongAsItsContent(t *testing.T) {
	onStore(t, indexed, func(t *testing.T, w *world) {
		ctx := t.Context()
		a, b := w.account(t, 1), w.account(t, 2)
		shared := mail("shared", "text")
		first := w.append(t, a, mailbox.InboxID, shared)
		w.append(t, a, mailbox.InboxID, mail("gone before it was indexed", ""))
		must(t, errors.Join(w.Deliver(ctx, mailbox.Delivery{Content: shared, To: []mailbox.Owner{owner(2)}})...))
		w.index(t)
		w.wantRows(t, "equal contents", 0, 2)
		w.append(t, b, mailbox.InboxID, mail("only of b", ""))
		must(t, w.Remove(ctx, b)) // with its queue entry
		w.wantRows(t, "after the removal of an account", 0, 2)
		_, _, err := w.Expunge(ctx, a, []mailbox.EmailID{first.Email, first.Email + 1})
		must(t, err)
		w.clock.advance(2 * time.Hour)
		must(t, w.RemoveUnused(ctx))
		w.wantRows(t, "after all messages were removed", 0, 0)
	})
}

func TestMessagesThatCameWithoutTheIndexAreAddedAtTheNextStart(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		a := w.account(t, 1)
		list := []mailbox.Message{w.append(t, a, mailbox.InboxID, mail("one", "")), w.append(t, a, mailbox.InboxID, mail("two", ""))}
		w.index(t)
		w.wantRows(t, "without the index", 0, 0)
		o := indexed
		o.Clock, o.Logger = w.clock, slog.New(slog.DiscardHandler)
		w.Store = mailbox.New(w.db, o)
		t.Cleanup(w.Close)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { defer close(stopped); w.IndexSearches(ctx) }()
		defer func() { stop(); <-stopped }()
		waitFor(t, func() bool { return w.rows(t, "search_filters") == 2 })
		if got := w.excluded(t, list, "two"); !got[0] || got[1] {
			t.Errorf("two: excluded are %v", got)
		}
		list = append(list, w.append(t, a, mailbox.InboxID, mail("three", ""))) // the indexer follows
		waitFor(t, func() bool { return w.rows(t, "search_filters") == 3 })
		if got := w.excluded(t, list, "three"); !got[0] || !got[1] || got[2] {
			t.Errorf("three: excluded are %v", got)
		}
	})
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(2 * time.Minute)
	for !done() {
		select {
		case <-ticker.C:
		case <-late:
			t.Fatal("nothing happened for two minutes")
		}
	}
}

func TestAnUploadIsIndexedWhenItBecomesAMessage(t *testing.T) {
	onStore(t, indexed, func(t *testing.T, w *world) {
		a := w.account(t, 1)
		upload, err := w.Upload(t.Context(), a, mail("upload", ""))
		must(t, err)
		w.wantRows(t, "an upload", 0, 0)
		_, err = w.Append(t.Context(), a, []mailbox.NewMessage{{Mailbox: mailbox.InboxID, Upload: upload}})
		must(t, err)
		w.wantRows(t, "its message", 1, 0)
	})
}

func TestMessagesOfBlocksAreNotIndexed(t *testing.T) {
	onStore(t, indexed, func(t *testing.T, w *world) {
		w.depositAll(t, personal(lunch, 100))
		_, err := w.Open(t.Context(), owner(5))
		must(t, err)
		list, _, err := w.AllMessages(t.Context(), 5)
		must(t, err)
		w.index(t)
		w.wantRows(t, "a block", 0, 0)
		if len(list) != 1 {
			t.Fatalf("%d messages", len(list))
		}
		if w.excluded(t, list, "absent")[0] {
			t.Error("the message is excluded")
		}
	})
}

// TestSearchesAreRightWhileMessagesComeAndGo compares with the texts themselves, while indexers of two nodes run and are interrupted.
func TestSearchesAreRightWhileMessagesComeAndGo(t *testing.T) {
	onStore(t, indexed, func(t *testing.T, w *world) {
		o := indexed
		o.Clock = w.clock
		other := mailbox.New(w.db, o)
		t.Cleanup(other.Close)
		stopped := make(chan struct{}, 2)
		done := make(chan struct{})
		for _, s := range []*mailbox.Store{w.Store, other} {
			go func() {
				defer func() { stopped <- struct{}{} }()
				for i := 0; ; i++ {
					ctx, cancel := context.WithCancel(context.Background())
					if i%3 == 0 {
						go cancel() // somewhere in the batch
					}
					_, _ = s.Index(ctx) // it may fail: the next one continues
					cancel()
					select {
					case <-done:
						return
					case <-time.After(time.Millisecond):
					}
				}
			}()
		}
		defer func() { close(done); <-stopped; <-stopped }()
		r := rand.New(rand.NewPCG(7, 8))
		word := func() string {
			var b strings.Builder
			for range 3 + r.IntN(4) {
				b.WriteByte("abcd"[r.IntN(4)])
			}
			return b.String()
		}
		a := w.account(t, 1)
		texts := map[mailbox.EmailID]string{}
		for range 150 {
			switch r.IntN(4) {
			case 0, 1:
				text := word() + " " + word() + " " + word()
				m := w.append(t, a, mailbox.InboxID, mail("s", text))
				texts[m.Email] = text
			case 2:
				for email := range texts {
					_, _, err := w.Expunge(t.Context(), a, []mailbox.EmailID{email})
					must(t, err)
					delete(texts, email)
					break
				}
				if r.IntN(4) == 0 {
					w.clock.advance(2 * time.Hour)
					must(t, w.RemoveUnused(t.Context()))
				}
			case 3:
				list, _, err := w.AllMessages(t.Context(), a)
				must(t, err)
				pattern := word()
				for i, excluded := range w.excluded(t, list, pattern) {
					if text := texts[list[i].Email]; excluded && strings.Contains(text, pattern) {
						t.Fatalf("%q is excluded, a message with %q", pattern, text)
					}
				}
			}
		}
	})
}

func TestMessagesAreIndexedAgain(t *testing.T) {
	onStore(t, indexed, func(t *testing.T, w *world) {
		a, b := w.account(t, 1), w.account(t, 2)
		messages := make([]mailbox.NewMessage, 1500) // more than one part
		for i := range messages {
			messages[i] = mailbox.NewMessage{Mailbox: mailbox.InboxID, Content: mail("greetings", fmt.Sprintf("number%d.", i))}
		}
		_, err := w.Append(t.Context(), a, messages)
		must(t, err)
		w.append(t, b, mailbox.InboxID, mail("only of b", ""))
		_, err = w.Upload(t.Context(), b, []byte("an upload"))
		must(t, err)
		w.index(t)
		w.wantRows(t, "before", 0, 1501)
		again := func(of mailbox.AccountID) (queued, parts int) {
			for after := mailbox.ContentID(0); ; {
				done, err := w.Reindex(t.Context(), of, after)
				must(t, err)
				queued, parts = queued+done.Queued, parts+1
				if after = done.Next; after == 0 {
					return queued, parts
				}
			}
		}
		if queued, parts := again(b); queued != 1 || parts != 1 {
			t.Errorf("%d messages of b were queued in %d parts", queued, parts)
		}
		w.wantRows(t, "after b", 1, 1500)
		w.index(t)
		if queued, parts := again(a); queued != 1500 || parts != 2 {
			t.Errorf("%d messages of a were queued in %d parts", queued, parts)
		}
		w.wantRows(t, "after a", 1500, 1)
		if index, err := w.SearchIndex(t.Context()); err != nil || !index.Enabled || index.Waiting != 1500 {
			t.Errorf("the index is %+v (%v)", index, err)
		}
		_, err = w.Index(t.Context())
		must(t, err)
		if index, err := w.SearchIndex(t.Context()); err != nil || !index.Since.Equal(w.clock.Now()) {
			t.Errorf("the index is %+v (%v)", index, err)
		}
		w.index(t)
		if index, err := w.SearchIndex(t.Context()); err != nil || index.Waiting != 0 || !index.Since.IsZero() {
			t.Errorf("the index is %+v (%v)", index, err)
		}
		if queued, parts := again(0); queued != 1502 || parts != 2 { // with the upload
			t.Errorf("%d messages were queued in %d parts", queued, parts)
		}
		w.index(t)
		w.wantRows(t, "after all", 0, 1502)
	})
}

func TestWithoutAnIndexNothingIsIndexedAgain(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		w.append(t, w.account(t, 1), mailbox.InboxID, mail("one", ""))
		if _, err := w.Reindex(t.Context(), 0, 0); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("the error is %v", err)
		}
		if index, err := w.SearchIndex(t.Context()); err != nil || index.Enabled {
			t.Errorf("the index is %+v (%v)", index, err)
		}
	})
}

func TestTheIndexerWaitsForDeliveriesUpToALimit(t *testing.T) {
	onStore(t, indexed, func(t *testing.T, w *world) {
		a := w.account(t, 1)
		messages := make([]mailbox.NewMessage, 600)
		for i := range messages {
			messages[i] = mailbox.NewMessage{Mailbox: mailbox.InboxID, Content: mail("greetings", fmt.Sprintf("number%d.", i))}
		}
		_, err := w.Append(t.Context(), a, messages)
		must(t, err)
		if !mailbox.Yields(w.Store) {
			t.Error("the indexer does not wait while many messages are stored")
		}
		w.clock.advance(2 * time.Second)
		if mailbox.Yields(w.Store) {
			t.Error("the indexer waits although no message is stored")
		}
		w.clock.advance(time.Minute)
		for i := range messages {
			messages[i].Content = mail("more greetings", fmt.Sprintf("number%d.", i))
		}
		_, err = w.Append(t.Context(), a, messages)
		must(t, err)
		if mailbox.Yields(w.Store) {
			t.Error("the indexer still waits after a minute")
		}
	})
}
