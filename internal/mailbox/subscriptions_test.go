package mailbox_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

// subscribed returns the names that an account has subscribed, and among them those without a mailbox.
func (w *world) subscribed(t *testing.T, id mailbox.AccountID) (names, missing []string) {
	t.Helper()
	list, missing, err := w.Subscriptions(t.Context(), id)
	must(t, err)
	for _, m := range list {
		if m.Subscribed && m.ID > 6 { // not those that each account has
			names = append(names, mailbox.Path(list, m.ID))
		}
	}
	names = append(names, missing...)
	slices.Sort(names)
	return names, missing
}

func (w *world) expectSubscribed(t *testing.T, what string, id mailbox.AccountID, names, missing []string) {
	t.Helper()
	gotNames, gotMissing := w.subscribed(t, id)
	if !slices.Equal(gotNames, names) || !slices.Equal(gotMissing, missing) {
		t.Errorf("%s: subscribed are %q, without a mailbox %q; want %q and %q", what, gotNames, gotMissing, names, missing)
	}
}

func (w *world) box(t *testing.T, id mailbox.AccountID, m mailbox.NewMailbox) mailbox.MailboxID {
	t.Helper()
	made, err := w.CreateMailbox(t.Context(), id, m)
	must(t, err)
	return made.ID
}

func TestSubscribedNamesOutliveTheirMailboxes(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id, other := w.account(t, 1), w.account(t, 2)
		top := w.box(t, id, mailbox.NewMailbox{Name: "top", Subscribed: new(true)})
		in := w.box(t, id, mailbox.NewMailbox{Parent: top, Name: "cafe\u0301", Subscribed: new(true)})
		quiet := w.box(t, id, mailbox.NewMailbox{Parent: top, Name: "quiet"})
		before, err := w.Account(t.Context(), id)
		must(t, err)

		_, err = w.UpdateMailbox(t.Context(), id, mailbox.MailboxChange{ID: top, Name: new("new"), KeepNames: true})
		must(t, err)
		w.expectSubscribed(t, "after a renaming that keeps names", id, []string{"top", "top/caf\u00e9"}, []string{"top", "top/caf\u00e9"})
		w.expectSubscribed(t, "another account", other, nil, nil)
		changes, err := w.Changes(t.Context(), id, 0, before.State)
		must(t, err)
		var changed []mailbox.MailboxID
		for _, m := range changes.Mailboxes {
			changed = append(changed, m.ID)
		}
		if slices.Sort(changed); !slices.Equal(changed, []mailbox.MailboxID{top, in}) {
			t.Errorf("mailboxes %d changed, want those that lost their subscription, %d", changed, []mailbox.MailboxID{top, in})
		}

		// Each mailbox that gets one of the names is subscribed, and an answer of the store says so.
		back, err := w.UpdateMailbox(t.Context(), id, mailbox.MailboxChange{ID: top, Name: new("top")})
		must(t, err)
		if !back.Subscribed {
			t.Errorf("the renamed mailbox is %+v, though its name is subscribed", back)
		}
		w.expectSubscribed(t, "after the renaming back", id, []string{"top", "top/caf\u00e9"}, nil)

		_, err = w.UpdateMailbox(t.Context(), id, mailbox.MailboxChange{ID: top, Name: new("moved")})
		must(t, err)
		w.expectSubscribed(t, "after a renaming in JMAP", id, []string{"moved", "moved/caf\u00e9"}, nil)

		must(t, w.RemoveMailbox(t.Context(), id, mailbox.MailboxRemoval{ID: in, KeepName: true}))
		must(t, w.RemoveMailbox(t.Context(), id, mailbox.MailboxRemoval{ID: quiet, KeepName: true}))
		w.expectSubscribed(t, "after a removal", id, []string{"moved", "moved/caf\u00e9"}, []string{"moved/caf\u00e9"})
		again, err := w.CreateMailbox(t.Context(), id, mailbox.NewMailbox{Parent: top, Name: "caf\u00e9"})
		must(t, err)
		if !again.Subscribed {
			t.Error("the new mailbox is not subscribed, though its name is")
		}
		w.expectSubscribed(t, "after the name was used again", id, []string{"moved", "moved/caf\u00e9"}, nil)

		must(t, w.RemoveMailbox(t.Context(), id, mailbox.MailboxRemoval{ID: again.ID, KeepName: true}))
		w.box(t, id, mailbox.NewMailbox{Parent: top, Name: "caf\u00e9", Subscribed: new(false)})
		w.expectSubscribed(t, "after a client created it without a subscription", id, []string{"moved"}, nil)

		must(t, w.RemoveMailbox(t.Context(), id, mailbox.MailboxRemoval{ID: w.box(t, id, mailbox.NewMailbox{Name: "jmap", Subscribed: new(true)})}))
		w.expectSubscribed(t, "after a removal in JMAP", id, []string{"moved"}, nil)

		must(t, w.RemoveMailbox(t.Context(), id, mailbox.MailboxRemoval{ID: w.box(t, id, mailbox.NewMailbox{Name: "last", Subscribed: new(true)}), KeepName: true}))
		must(t, w.Unsubscribe(t.Context(), other, "last"))
		must(t, w.Unsubscribe(t.Context(), id, "never"))
		w.expectSubscribed(t, "before the end of the subscription", id, []string{"last", "moved"}, []string{"last"})
		must(t, w.Unsubscribe(t.Context(), id, "last"))
		w.expectSubscribed(t, "after it", id, []string{"moved"}, nil)
	})
}

func TestSubscribedNamesAreLimited(t *testing.T) {
	onStore(t, mailbox.Options{MaxMailboxes: 9}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		for i := range 9 {
			m := w.box(t, id, mailbox.NewMailbox{Name: fmt.Sprint("box ", i), Subscribed: new(true)})
			must(t, w.RemoveMailbox(t.Context(), id, mailbox.MailboxRemoval{ID: m, KeepName: true}))
		}
		m := w.box(t, id, mailbox.NewMailbox{Name: "one more", Subscribed: new(true)})
		if err := w.RemoveMailbox(t.Context(), id, mailbox.MailboxRemoval{ID: m, KeepName: true}); !errors.Is(err, mailbox.ErrTooMany) {
			t.Errorf("the tenth name: %v", err)
		}
		if _, err := w.UpdateMailbox(t.Context(), id, mailbox.MailboxChange{ID: m, Name: new("renamed"), KeepNames: true}); !errors.Is(err, mailbox.ErrTooMany) {
			t.Errorf("the tenth name, by renaming: %v", err)
		}
		if now, err := w.Mailbox(t.Context(), id, m); err != nil || now.Name != "one more" || !now.Subscribed {
			t.Errorf("the mailbox is %+v, %v", now, err)
		}
		must(t, w.Unsubscribe(t.Context(), id, "box 4"))
		must(t, w.RemoveMailbox(t.Context(), id, mailbox.MailboxRemoval{ID: m, KeepName: true}))
	})
}
