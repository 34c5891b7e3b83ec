package mailbox_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A testClock stands still until it is set.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *testClock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

type world struct {
	*mailbox.Store
	db    store.Database
	clock *testClock
}

// onStore runs a test on the chosen database: make ci runs all tests of a store on both.
func onStore(t *testing.T, o mailbox.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	w := &world{db: storetest.Open(t), clock: &testClock{now: noon}}
	o.Clock, o.Logger = w.clock, slog.New(slog.DiscardHandler)
	w.Store = mailbox.New(w.db, o)
	t.Cleanup(w.Close)
	test(t, w)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func owner(n int) mailbox.Owner {
	return mailbox.Owner{ID: mailbox.AccountID(n), Service: "press", Address: fmt.Sprintf("person%d@example.org", n)}
}

func (w *world) account(t testing.TB, n int) mailbox.AccountID {
	t.Helper()
	a, err := w.Create(t.Context(), owner(n))
	must(t, err)
	return a.ID
}

func mail(subject, body string, headers ...string) []byte {
	return []byte(strings.Join(append(headers, "From: a@example.org", "Subject: "+subject, "", body, ""), "\r\n"))
}

func (w *world) append(t testing.TB, id mailbox.AccountID, box mailbox.MailboxID, content []byte) mailbox.Message {
	t.Helper()
	list, err := w.Append(t.Context(), id, []mailbox.NewMessage{{Mailbox: box, Content: content}})
	must(t, err)
	return list[0]
}

// A full read of an account, in a form that can be compared.
type full struct {
	state    mailbox.ModSeq
	messages map[mailbox.EmailID]mailbox.Message
	boxes    map[mailbox.MailboxID]mailbox.Mailbox
}

func (w *world) full(t testing.TB, id mailbox.AccountID) full {
	t.Helper()
	f := full{messages: map[mailbox.EmailID]mailbox.Message{}, boxes: map[mailbox.MailboxID]mailbox.Mailbox{}}
	list, state, err := w.AllMessages(t.Context(), id)
	must(t, err)
	f.state = state
	for _, m := range list {
		f.messages[m.Email] = m
	}
	boxes, err := w.Mailboxes(t.Context(), id)
	must(t, err)
	for _, m := range boxes {
		f.boxes[m.ID] = m
	}
	return f
}

// apply changes an earlier full read as a client does.
func (f *full) apply(c mailbox.Changes) full {
	now := full{c.State, map[mailbox.EmailID]mailbox.Message{}, map[mailbox.MailboxID]mailbox.Mailbox{}}
	for email, m := range f.messages {
		now.messages[email] = m
	}
	for id, m := range f.boxes {
		now.boxes[id] = m
	}
	for _, r := range c.Removed {
		if r.Destroyed {
			delete(now.messages, r.Email)
		}
	}
	for _, m := range c.Messages {
		now.messages[m.Email] = m
	}
	for _, r := range c.RemovedMailboxes {
		delete(now.boxes, r.ID)
	}
	for _, m := range c.Mailboxes {
		now.boxes[m.ID] = m
	}
	return now
}

func (f *full) compare(t testing.TB, what string, want full) {
	t.Helper()
	if f.state != want.state {
		t.Fatalf("%s: state %d, want %d", what, f.state, want.state)
	}
	if len(f.messages) != len(want.messages) {
		t.Fatalf("%s: %d messages, want %d", what, len(f.messages), len(want.messages))
	}
	for email, m := range want.messages {
		if f.messages[email] != m {
			t.Fatalf("%s: message %d is\n%+v, want\n%+v", what, email, f.messages[email], m)
		}
	}
	if len(f.boxes) != len(want.boxes) {
		t.Fatalf("%s: %d mailboxes, want %d", what, len(f.boxes), len(want.boxes))
	}
	for id, m := range want.boxes {
		got := f.boxes[id]
		got.RecentFrom, m.RecentFrom = 0, 0 // no protocol shows it as a change
		if got != m {
			t.Fatalf("%s: mailbox %d is\n%+v, want\n%+v", what, id, got, m)
		}
	}
}

// TestChangesFromAnyStateEqualAFullRead makes random changes, and compares the account with counts that the test keeps itself, and with the changes
// since earlier states.
func TestChangesFromAnyStateEqualAFullRead(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		r := rand.New(rand.NewPCG(23, 1))
		id := w.account(t, 7)
		ctx := t.Context()
		states := []full{w.full(t, id)}
		uidNext := map[mailbox.MailboxID]mailbox.UID{}
		bodies := map[mailbox.EmailID][]byte{}
		steps := 400
		for step := range steps {
			before := w.full(t, id)
			var emails []mailbox.EmailID
			for email := range before.messages {
				emails = append(emails, email)
			}
			slices.Sort(emails)
			r.Shuffle(len(emails), func(i, j int) { emails[i], emails[j] = emails[j], emails[i] })
			var boxes []mailbox.MailboxID
			for box := range before.boxes {
				boxes = append(boxes, box)
			}
			slices.Sort(boxes)
			box := boxes[r.IntN(len(boxes))]
			some := emails[:min(len(emails), r.IntN(4))]
			w.clock.advance(time.Duration(r.IntN(90)) * time.Second)
			switch r.IntN(9) {
			case 0, 1:
				body := mail(fmt.Sprint("subject ", r.IntN(5)), fmt.Sprint("body ", r.IntN(20)), fmt.Sprintf("Message-ID: <%d@x>", r.IntN(30)))
				m := w.append(t, id, box, body)
				bodies[m.Email] = body
			case 2:
				body := mail("delivered", fmt.Sprint(step))
				for _, err := range w.Deliver(ctx, mailbox.Delivery{Content: body, To: []mailbox.Owner{owner(7), owner(8)}}) {
					must(t, err)
				}
			case 3, 4:
				_, _, err := w.UpdateFlags(ctx, id, []mailbox.FlagChange{{Emails: some, Mode: mailbox.FlagMode(r.IntN(3)), Flags: mailbox.Flags(r.IntN(32)), Keywords: []string{"a", "B", "c"}[:r.IntN(4)]}})
				must(t, err)
			case 5:
				_, copies, err := w.Copy(ctx, id, some, box)
				must(t, err)
				for i, m := range copies {
					bodies[m.Email] = bodies[some[i]]
				}
			case 6:
				_, _, err := w.Move(ctx, id, some, box)
				must(t, err)
			case 7:
				_, _, err := w.Expunge(ctx, id, some)
				must(t, err)
			case 8:
				if r.IntN(2) == 0 {
					_, err := w.CreateMailbox(ctx, id, mailbox.NewMailbox{Parent: box, Name: fmt.Sprint("box ", r.IntN(6))})
					if err != nil && !errors.Is(err, mailbox.ErrExists) && !errors.Is(err, mailbox.ErrBadName) {
						t.Fatal(err)
					}
				} else if err := w.RemoveMailbox(ctx, id, mailbox.MailboxRemoval{ID: box, WithMessages: true, KeepName: r.IntN(2) == 0}); err != nil && !errors.Is(err, mailbox.ErrFixed) && !errors.Is(err, mailbox.ErrHasChild) {
					t.Fatal(err)
				}
			}
			after := w.full(t, id)
			if after.state < before.state {
				t.Fatalf("step %d: the state went from %d to %d", step, before.state, after.state)
			}
			checkCounts(t, after)
			for box, m := range after.boxes {
				if m.UIDNext < uidNext[box] {
					t.Fatalf("step %d: UIDNEXT of mailbox %d went from %d to %d", step, box, uidNext[box], m.UIDNext)
				}
				uidNext[box] = m.UIDNext
			}
			states = append(states, after)
			from := states[r.IntN(len(states))]
			c, err := w.Changes(ctx, id, 0, from.state)
			must(t, err)
			got := from.apply(c)
			got.compare(t, fmt.Sprintf("step %d, changes since %d", step, from.state), after)
			checkMailboxChanges(t, w, id, from, after)
		}
		for email, body := range bodies {
			data, err := w.Content(ctx, id, email)
			if errors.Is(err, mailbox.ErrNoMessage) {
				continue
			}
			if must(t, err); body != nil && !bytes.Equal(data, body) {
				t.Errorf("message %d has the bytes %q, want %q", email, data, body)
			}
		}
	})
}

// checkMailboxChanges compares the changes of each mailbox, as a client of IMAP with QRESYNC applies them.
func checkMailboxChanges(t *testing.T, w *world, id mailbox.AccountID, from, after full) {
	t.Helper()
	for box := range after.boxes {
		if _, was := from.boxes[box]; !was {
			continue
		}
		c, err := w.Changes(t.Context(), id, box, from.state)
		must(t, err)
		got := map[mailbox.UID]mailbox.Message{}
		for _, m := range from.messages {
			if m.Mailbox == box {
				got[m.UID] = m
			}
		}
		for _, m := range c.Messages {
			got[m.UID] = m
		}
		for _, r := range c.Removed {
			delete(got, r.UID)
		}
		list, m, err := w.Messages(t.Context(), id, box)
		must(t, err)
		if len(list) != len(got) || c.State != m.HighestMod {
			t.Fatalf("mailbox %d has %d messages, state %d; by its changes %d, state %d", box, len(list), m.HighestMod, len(got), c.State)
		}
		for _, m := range list {
			if got[m.UID] != m {
				t.Fatalf("mailbox %d: UID %d is by its changes\n%+v, want\n%+v", box, m.UID, got[m.UID], m)
			}
		}
	}
}

func checkCounts(t *testing.T, f full) {
	t.Helper()
	type counts struct{ messages, unseen, deleted, bytes int64 }
	want := map[mailbox.MailboxID]counts{}
	for _, m := range f.messages {
		c := want[m.Mailbox]
		c.messages++
		c.bytes += m.Size
		if m.Flags&mailbox.Seen == 0 {
			c.unseen++
		}
		if m.Flags&mailbox.Deleted != 0 {
			c.deleted++
		}
		want[m.Mailbox] = c
	}
	for id, m := range f.boxes {
		if got := (counts{m.Messages, m.Unseen, m.Deleted, m.Bytes}); got != want[id] {
			t.Fatalf("mailbox %d counts %+v, want %+v", id, got, want[id])
		}
	}
}

func TestConcurrentChangesShareATransactionAndFailAlone(t *testing.T) {
	onStore(t, mailbox.Options{MaxMessages: 3}, func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		results := make([][]error, 40)
		for i := range results {
			wg.Go(func() {
				results[i] = w.Deliver(t.Context(), mailbox.Delivery{Content: mail("same", "for all"), To: []mailbox.Owner{owner(1 + i%2), owner(3 + i)}})
			})
		}
		wg.Wait()
		full := 0
		for _, errs := range results {
			if errs[1] != nil {
				t.Errorf("the second account of a delivery: %v", errs[1])
			}
			if errs[0] != nil {
				full++
				if !errors.Is(errs[0], mailbox.ErrOverQuota) {
					t.Errorf("the first account of a delivery: %v", errs[0])
				}
			}
		}
		if full != 34 {
			t.Errorf("%d deliveries exceeded the quota, want 34", full)
		}
		for n := 1; n <= 42; n++ {
			a, err := w.Account(t.Context(), mailbox.AccountID(n))
			must(t, err)
			if want := int64(map[bool]int{true: 3, false: 1}[n <= 2]); a.Quota.Messages != want {
				t.Errorf("account %d has %d messages, want %d", n, a.Quota.Messages, want)
			}
		}
	})
}

func TestContentsAreStoredOnceAndRemovedWhenUnused(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		ctx := t.Context()
		a, b := w.account(t, 1), w.account(t, 2)
		body := mail("one", "body")
		first, second := w.append(t, a, mailbox.InboxID, body), w.append(t, b, mailbox.InboxID, body)
		if first.Content != second.Content {
			t.Errorf("the same bytes are stored as %d and %d", first.Content, second.Content)
		}
		_, _, err := w.Expunge(ctx, a, []mailbox.EmailID{first.Email})
		must(t, err)
		w.clock.advance(25 * time.Hour)
		must(t, w.RemoveUnused(ctx))
		if data, err := w.Content(ctx, b, second.Email); err != nil || !bytes.Equal(data, body) {
			t.Errorf("the other account reads %q, %v", data, err)
		}
		_, _, err = w.Expunge(ctx, b, []mailbox.EmailID{second.Email})
		must(t, err)
		w.clock.advance(30 * time.Minute)
		must(t, w.RemoveUnused(ctx))
		if third := w.append(t, a, mailbox.InboxID, body); third.Content != first.Content {
			t.Errorf("bytes that were unused for half an hour got the new number %d", third.Content)
		}
		w.clock.advance(2 * time.Hour)
		must(t, w.RemoveUnused(ctx))
		upload, err := w.Upload(ctx, a, []byte("attachment"))
		must(t, err)
		again, err := w.Upload(ctx, a, []byte("attachment"))
		must(t, err)
		if upload != again {
			t.Errorf("the same upload is %d and %d", upload, again)
		}
		if _, err := w.Uploaded(ctx, b, upload); !errors.Is(err, mailbox.ErrNoMessage) {
			t.Errorf("another account reads the upload: %v", err)
		}
		data, err := w.Uploaded(ctx, a, upload)
		if must(t, err); string(data) != "attachment" {
			t.Errorf("the upload is %q", data)
		}
		w.clock.advance(25 * time.Hour)
		must(t, w.RemoveUnused(ctx))
		w.clock.advance(2 * time.Hour)
		must(t, w.RemoveUnused(ctx))
		if _, err := w.Uploaded(ctx, a, upload); !errors.Is(err, mailbox.ErrNoMessage) {
			t.Errorf("the old upload is there: %v", err)
		}
		if n := w.rows(t, "contents"); n != 1 {
			t.Errorf("%d contents are stored, want 1", n)
		}
		must(t, w.Remove(ctx, a))
		if n := w.rows(t, "contents") + w.rows(t, "content_data") + w.rows(t, "messages"); n != 0 {
			t.Errorf("%d rows remain of the removed account", n)
		}
		if _, err := w.Account(ctx, a); !errors.Is(err, mailbox.ErrNoAccount) {
			t.Errorf("the removed account: %v", err)
		}
	})
}

// rows counts the rows of a table.
func (w *world) rows(t testing.TB, table string) (n int64) {
	t.Helper()
	must(t, w.db.Mailboxes().Read(t.Context(), func(s store.Session) error {
		return s.Each("count_"+table, func(r store.Row) error { n = r.Int64(0); return nil })
	}))
	return n
}

func TestNamesOfMailboxesAreChecked(t *testing.T) {
	onStore(t, mailbox.Options{MaxMailboxes: 9}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		for name, want := range map[string]error{
			"":                       mailbox.ErrBadName,
			"a/b":                    mailbox.ErrBadName,
			"line\nbreak":            mailbox.ErrBadName,
			"nul\x00":                mailbox.ErrBadName,
			"\xff":                   mailbox.ErrBadName,
			strings.Repeat("x", 256): mailbox.ErrBadName,
			"inbox":                  mailbox.ErrExists,
			"Sent":                   mailbox.ErrExists,
			"../../etc":              mailbox.ErrBadName,
			"..":                     nil,
			"cafe\u0301":             nil,
			"caf\u00e9 ":             nil,
		} {
			if _, err := w.CreateMailbox(t.Context(), id, mailbox.NewMailbox{Name: name}); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", name, err, want)
			}
		}
		if _, err := w.CreateMailbox(t.Context(), id, mailbox.NewMailbox{Name: "one more"}); !errors.Is(err, mailbox.ErrTooMany) {
			t.Errorf("the tenth mailbox: %v", err)
		}
		boxes, err := w.Mailboxes(t.Context(), id)
		must(t, err)
		var names []string
		validities := map[uint32]bool{}
		for _, m := range boxes {
			names = append(names, m.Name)
			validities[m.UIDValidity] = true
		}
		slices.Sort(names[6:])
		if want := []string{"INBOX", "Drafts", "Sent", "Archive", "Junk", "Trash", "..", "café", "café "}; !slices.Equal(names, want) {
			t.Errorf("mailboxes %q, want %q", names, want)
		}
		if len(validities) != len(boxes) {
			t.Errorf("%d mailboxes have %d values of UIDVALIDITY", len(boxes), len(validities))
		}
	})
}

func TestUIDValidityIsNotUsedAgain(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		seen := map[uint32]bool{}
		for range 5 {
			m, err := w.CreateMailbox(t.Context(), id, mailbox.NewMailbox{Name: "again"})
			must(t, err)
			if seen[m.UIDValidity] {
				t.Errorf("UIDVALIDITY %d is used again", m.UIDValidity)
			}
			seen[m.UIDValidity] = true
			must(t, w.RemoveMailbox(t.Context(), id, mailbox.MailboxRemoval{ID: m.ID}))
		}
	})
}

func TestNumbersThatMayHaveBeenGivenAreSkipped(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		before, err := w.Account(t.Context(), id)
		must(t, err)
		box, err := w.CreateMailbox(t.Context(), id, mailbox.NewMailbox{Name: "kept"})
		must(t, err)
		first := w.append(t, id, box.ID, []byte("Subject: one\r\n\r\n"))
		must(t, w.SkipNumbers(t.Context()))
		again := w.append(t, id, box.ID, []byte("Subject: two\r\n\r\n"))
		const many = 100_000
		if again.UID < first.UID+many || again.Email < first.Email+many || again.ModSeq < first.ModSeq+many {
			t.Errorf("after %+v: %+v", first, again)
		}
		if _, err := w.Changes(t.Context(), id, box.ID, before.State); !errors.Is(err, mailbox.ErrOldModSeq) {
			t.Errorf("the changes since a state that may have been skipped: %v", err)
		}
		next, err := w.CreateMailbox(t.Context(), id, mailbox.NewMailbox{Name: "next"})
		must(t, err)
		if next.ID < box.ID+many || next.UIDValidity < box.UIDValidity+1000 {
			t.Errorf("after %+v: %+v", box, next)
		}
	})
}

func TestMessagesOfOneConversationShareAThread(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		first := w.append(t, id, mailbox.InboxID, mail("Lunch", "?", "Message-ID: <1@x>"))
		reply := w.append(t, id, mailbox.InboxID, mail("Re: Lunch", "yes", "Message-ID: <2@x>", "In-Reply-To: <1@x>"))
		last := w.append(t, id, mailbox.InboxID, mail("AW: [team] lunch", "at noon", "Message-ID: <3@x>", "References: <1@x> <2@x>"))
		other := w.append(t, id, mailbox.InboxID, mail("Dinner", "?", "Message-ID: <4@x>", "References: <1@x>"))
		if reply.Thread != first.Thread || last.Thread != first.Thread || other.Thread == first.Thread {
			t.Errorf("threads %d, %d, %d, and %d of another subject", first.Thread, reply.Thread, last.Thread, other.Thread)
		}
		threads, _, err := w.Threads(t.Context(), id, []mailbox.ThreadID{other.Thread, 999, first.Thread})
		must(t, err)
		want := [][]mailbox.EmailID{{other.Email}, nil, {first.Email, reply.Email, last.Email}}
		if !slices.EqualFunc(threads, want, slices.Equal) {
			t.Errorf("threads %v, want %v", threads, want)
		}
	})
}

func TestMessagesThatChangedMeanwhileKeepTheirFlags(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		ctx := t.Context()
		id := w.account(t, 1)
		a, b := w.append(t, id, mailbox.InboxID, mail("a", "")), w.append(t, id, mailbox.InboxID, mail("b", ""))
		since := b.ModSeq
		now, _, err := w.UpdateFlags(ctx, id, []mailbox.FlagChange{{Emails: []mailbox.EmailID{a.Email}, Mode: mailbox.AddFlags, Flags: mailbox.Seen}})
		must(t, err)
		if now[0].ModSeq <= since {
			t.Errorf("the change took the ModSeq %d, and the one before %d", now[0].ModSeq, since)
		}
		now, modified, err := w.UpdateFlags(ctx, id, []mailbox.FlagChange{{Emails: []mailbox.EmailID{a.Email, b.Email}, Mode: mailbox.AddFlags, Flags: mailbox.Flagged, Keywords: []string{"$Label1"}, UnchangedSince: &since}})
		must(t, err)
		if !slices.Equal(modified, []mailbox.EmailID{a.Email}) || len(now) != 2 || now[0].Flags != mailbox.Seen || now[1].Flags != mailbox.Flagged || now[1].Keywords != "$Label1" {
			t.Errorf("modified %v, now %+v", modified, now)
		}
		state := now[1].ModSeq
		now, _, err = w.UpdateFlags(ctx, id, []mailbox.FlagChange{{Emails: []mailbox.EmailID{b.Email}, Mode: mailbox.AddFlags, Keywords: []string{"$LABEL1"}}})
		must(t, err)
		if now[0].Keywords != "$Label1" || now[0].ModSeq != state {
			t.Errorf("a keyword that the message has changed it: %+v", now[0])
		}
	})
}

func TestAccountsAreApart(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		ctx := t.Context()
		a, b := w.account(t, 1), w.account(t, 2)
		m := w.append(t, a, mailbox.InboxID, mail("secret", ""))
		upload, err := w.Upload(ctx, a, []byte("secret too"))
		must(t, err)
		if _, err := w.Content(ctx, b, m.Email); !errors.Is(err, mailbox.ErrNoMessage) {
			t.Errorf("content: %v", err)
		}
		if _, err := w.Structure(ctx, b, m.Email); !errors.Is(err, mailbox.ErrNoMessage) {
			t.Errorf("structure: %v", err)
		}
		if _, err := w.Append(ctx, b, []mailbox.NewMessage{{Mailbox: mailbox.InboxID, Upload: upload}}); !errors.Is(err, mailbox.ErrNoMessage) {
			t.Errorf("append of the upload: %v", err)
		}
		for name, change := range map[string]func() (int, error){
			"copy": func() (int, error) {
				list, _, err := w.Copy(ctx, b, []mailbox.EmailID{m.Email}, mailbox.InboxID)
				return len(list), err
			},
			"move": func() (int, error) {
				list, _, err := w.Move(ctx, b, []mailbox.EmailID{m.Email}, mailbox.InboxID)
				return len(list), err
			},
			"flags": func() (int, error) {
				list, _, err := w.UpdateFlags(ctx, b, []mailbox.FlagChange{{Emails: []mailbox.EmailID{m.Email}, Flags: mailbox.Seen}})
				return len(list), err
			},
			"expunge": func() (int, error) {
				list, _, err := w.Expunge(ctx, b, []mailbox.EmailID{m.Email})
				return len(list), err
			},
		} {
			if n, err := change(); n != 0 || err != nil {
				t.Errorf("%s: %d messages, %v", name, n, err)
			}
		}
	})
}

func TestWatchersLearnEachChange(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		a, b := w.account(t, 1), w.account(t, 2)
		states := make(chan mailbox.ModSeq, 10)
		stop := w.Watch(a, func(state mailbox.ModSeq) { states <- state })
		w.append(t, b, mailbox.InboxID, mail("other", ""))
		m := w.append(t, a, mailbox.InboxID, mail("mine", ""))
		if got := <-states; got != m.ModSeq {
			t.Errorf("state %d, want %d", got, m.ModSeq)
		}
		stop()
		w.append(t, a, mailbox.InboxID, mail("later", ""))
		select {
		case state := <-states:
			t.Errorf("state %d after the end of the watch, or of another account", state)
		default:
		}
	})
}

func TestOldRemovalsAreForgottenInOrder(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		ctx := t.Context()
		id := w.account(t, 1)
		first, err := w.Account(ctx, id)
		must(t, err)
		const messages = 300
		for range 80 {
			list := make([]mailbox.NewMessage, messages)
			for i := range list {
				list[i] = mailbox.NewMessage{Mailbox: mailbox.InboxID, Content: mail("x", "")}
			}
			added, err := w.Append(ctx, id, list)
			must(t, err)
			emails := make([]mailbox.EmailID, len(added))
			for i := range added {
				emails[i] = added[i].Email
			}
			_, _, err = w.Expunge(ctx, id, emails)
			must(t, err)
		}
		if n := w.rows(t, "removed"); n >= 80*messages || n < 10_000 {
			t.Errorf("the log has %d removals", n)
		}
		if _, err := w.Changes(ctx, id, 0, first.State); !errors.Is(err, mailbox.ErrOldModSeq) {
			t.Errorf("changes since the beginning: %v", err)
		}
		now, err := w.Account(ctx, id)
		must(t, err)
		c, err := w.Changes(ctx, id, 0, now.Oldest)
		must(t, err)
		if len(c.Removed) != int(w.rows(t, "removed")) {
			t.Errorf("%d removals since the oldest state", len(c.Removed))
		}
		if !slices.IsSortedFunc(c.Removed, func(a, b mailbox.Removed) int { return cmp.Compare(a.UID, b.UID) }) {
			t.Error("the removals are not in order")
		}
	})
}

func TestAppPasswordsAreStoredAndRemoved(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		ctx := t.Context()
		a, b := w.account(t, 1), w.account(t, 2)
		c := mailbox.Credential{Name: "phone", Verifier: mailbox.Verifier{Salt: []byte("salt"), Iterations: 4096, StoredKey: []byte("stored"), ServerKey: []byte("server")}}
		must(t, w.AddCredential(ctx, a, &c))
		must(t, w.UsedCredential(ctx, a, c.ID))
		list, err := w.Credentials(ctx, a)
		must(t, err)
		if len(list) != 1 || list[0].Name != "phone" || !list[0].UsedAt.Equal(noon) || string(list[0].StoredKey) != "stored" || list[0].Iterations != 4096 {
			t.Errorf("app passwords %+v", list)
		}
		if err := w.RemoveCredential(ctx, b, c.ID); err == nil {
			t.Error("another account removed the app password")
		}
		must(t, w.RemoveCredential(ctx, a, c.ID))
		if list, err := w.Credentials(ctx, a); err != nil || len(list) != 0 {
			t.Errorf("app passwords %+v, %v", list, err)
		}
		for i := range 26 {
			next := mailbox.Credential{Name: fmt.Sprint(i)}
			if err := w.AddCredential(ctx, a, &next); (err == nil) != (i < 25) {
				t.Errorf("app password %d: %v", i+1, err)
			}
		}
	})
}

func TestAClosedStoreRefusesChanges(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		w.Close()
		w.Close()
		if _, err := w.Append(context.Background(), id, []mailbox.NewMessage{{Mailbox: mailbox.InboxID, Content: mail("late", "")}}); err == nil {
			t.Error("a closed store took a message")
		}
		if _, _, err := w.AllMessages(context.Background(), id); err != nil {
			t.Errorf("a closed store does not read: %v", err)
		}
	})
}

func TestAMessageThatIsNamedTwiceIsMovedAndRemovedOnce(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		a, b := w.append(t, id, mailbox.InboxID, mail("a", "a")), w.append(t, id, mailbox.InboxID, mail("b", "b"))
		twice := []mailbox.EmailID{a.Email, b.Email, a.Email}
		_, moved, err := w.Move(t.Context(), id, twice, 3)
		if must(t, err); len(moved) != 2 || moved[0].Email != a.Email || moved[0].UID != 1 || moved[1].UID != 2 {
			t.Errorf("moved are %+v", moved)
		}
		checkCounts(t, w.full(t, id))
		removed, _, err := w.Expunge(t.Context(), id, twice)
		if must(t, err); len(removed) != 2 || removed[0].Email != a.Email {
			t.Errorf("removed are %+v", removed)
		}
		checkCounts(t, w.full(t, id))
	})
}

func TestARemovalNamesTheThreadOfTheMessage(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		first := w.append(t, id, mailbox.InboxID, mail("hello", "a", "Message-ID: <1@example.org>"))
		reply := w.append(t, id, mailbox.InboxID, mail("Re: hello", "b", "Message-ID: <2@example.org>", "In-Reply-To: <1@example.org>"))
		before, err := w.Account(t.Context(), id)
		must(t, err)
		_, _, err = w.Expunge(t.Context(), id, []mailbox.EmailID{reply.Email})
		must(t, err)
		changes, err := w.Changes(t.Context(), id, 0, before.State)
		must(t, err)
		if len(changes.Removed) != 1 || changes.Removed[0].Thread != first.Thread || changes.Removed[0].Created != reply.Created || changes.Removed[0].ModSeq <= reply.Created {
			t.Errorf("got %+v; the message was %+v", changes.Removed, reply)
		}
	})
}
