package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// hearing is weather with a service that gets notices about its subscribers.
const hearing = weather + `  fanfare.subscriptions: {}
  fanfare.suppressions: {}
`

// A listener is a registry whose service gets notices, with the stored notices.
type listener struct {
	*registry.Registry
	t    *testing.T
	kept *control.Store
}

func listen(t *testing.T, place string) *listener {
	t.Helper()
	l := &listener{t: t}
	l.Registry, _ = openAt(t, place, withSuppressions, func(o *registry.Options) { l.kept = o.Store.(*control.Store) })
	return l
}

// hear subscribes the service to both reserved topics.
func (l *listener) hear(ids ...string) {
	l.t.Helper()
	for _, topic := range ids {
		good(l.t, putAll(l.t, l.Registry, people.SubscriptionPut{ID: topic, Topic: topic, Channel: "email", To: "desk@example.org"}))
	}
}

// news returns the stored notices, one per line, and deletes them.
func (l *listener) news() (lines []string) {
	l.t.Helper()
	for {
		plan, err := l.kept.PlanNotices(l.t.Context(), 10)
		if err != nil {
			l.t.Fatal(err)
		}
		if len(plan) == 0 {
			return lines
		}
		for i := range plan {
			names, err := l.NoticeNames(l.t.Context(), plan[i].Notices)
			if err != nil {
				l.t.Fatal(err)
			}
			for j := range plan[i].Notices {
				n, called := &plan[i].Notices[j], &names[j]
				line := fmt.Sprintf("%s %s %s %s", called.Service, n.Kind, n.Source, n.Reason)
				if n.Subscription != 0 {
					line += fmt.Sprintf("| %s %s %s %v", called.Topic, called.Channel, called.Subscription, n.Fields)
				} else {
					line += fmt.Sprintf("| %s %v %v", called.Address, n.Until != 0, n.AllServices)
				}
				lines = append(lines, line+" of "+called.Subscriber)
			}
		}
		if err := l.kept.DeleteNotices(l.t.Context(), plan); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *listener) check(what string, want ...string) {
	l.t.Helper()
	if got := l.news(); !slices.Equal(got, want) {
		l.t.Errorf("%s: told are %q, want %q", what, got, want)
	}
}

// ada has two subscriptions, with client ids.
func (l *listener) ada() (places []fanfare.RowID) {
	l.t.Helper()
	if err := person(l.t, l.Registry, "ada", "ada@example.org"); err != nil {
		l.t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		good(l.t, putAll(l.t, l.Registry, people.SubscriptionPut{ID: id, Topic: "change", Channel: "email", Subscriber: "ada"}))
		places = append(places, stateOf(l.t, l.Registry, id).Place)
	}
	return places
}

func TestNoticesReportEachOutcome(t *testing.T) {
	ctx, place := t.Context(), storetest.Place(t)
	l := listen(t, place)
	apply(t, l.Registry, hearing)
	l.hear(fanfare.TopicSubscriptions)
	places := l.ada()
	l.check("a program subscribes her")
	seq, err := l.EndSubscriptions(ctx, "notify", places, people.Ending{Source: people.SourcePage, Reason: "often", Text: byLink + ": too many messages"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.EndSubscriptions(ctx, "notify", places, people.Ending{Source: people.SourcePage, Text: byLink}); err != nil {
		t.Fatal(err)
	}
	l.check("by the page", "notify unsubscribed page often| change email a [] of ada", "notify unsubscribed page often| change email b [] of ada")
	for range 2 {
		if _, err := l.Restore(ctx, "notify", places[0], seq, byLink); err != nil {
			t.Fatal(err)
		}
	}
	l.check("taken back", "notify resubscribed undo | change email a [] of ada", "notify resubscribed undo | change email b [] of ada")
	if err := l.EndSubscription(ctx, "notify", "a", "in words of ours"); err != nil {
		t.Fatal(err)
	}
	l.Close()
	l = listen(t, place) // what waits is kept
	l.check("by a program", "notify unsubscribed api | change email a [] of ada")
	good(t, putAll(t, l.Registry, people.SubscriptionPut{Topic: "other", Channel: "email", Subscriber: "ada", By: people.SourceSignup}))
	own := people.SubscriptionPut{Topic: "other", Channel: "email", Subscriber: "ada", Data: []byte(`{"n":1}`), By: people.SourcePreferences}
	good(t, putAll(t, l.Registry, own))
	good(t, putAll(t, l.Registry, own)) // changes nothing
	list := l.news()
	if len(list) != 2 || !strings.HasPrefix(list[0], "notify subscribed signup | other email sub-") || !strings.HasPrefix(list[1], "notify changed preferences | other email sub-") || !strings.HasSuffix(list[1], " [data] of ada") {
		t.Errorf("by herself: told are %q", list)
	}
	good(t, putAll(t, l.Registry, people.SubscriptionPut{ID: "b", Topic: "other", Channel: "print", Subscriber: "ada"}))
	l.check("another under its id", "notify unsubscribed api replaced| change email b [] of ada")
	if err := l.DeleteSubscriber(ctx, "notify", "ada", nil); err != nil {
		t.Fatal(err)
	}
	if list = l.news(); len(list) != 2 || !strings.Contains(list[0], "unsubscribed api deleted| other") || !strings.Contains(list[1], "unsubscribed api deleted| other print b") {
		t.Errorf("deleted: told are %q", list)
	}
	if err := l.EndSubscription(ctx, "notify", fanfare.TopicSubscriptions, ""); err != nil {
		t.Fatal(err)
	}
	l.check("of who hears, nobody is told")
	if err := l.EndSubscription(ctx, "notify", "b", ""); err != nil {
		t.Fatal(err)
	}
	l.check("nobody hears")
}

func TestNoticesReportSuppressions(t *testing.T) {
	ctx := t.Context()
	l := listen(t, storetest.Place(t))
	apply(t, l.Registry, hearing)
	apply(t, l.Registry, strings.Replace(hearing, "notify", "second", 1))
	l.hear(fanfare.TopicSuppressions)
	l.ada()
	suppress(t, l.Registry, suppression.Request{Service: "notify", Address: "Ada@example.org", Reason: suppression.ReasonSoftBounces, Until: time.Now().Add(time.Hour)})
	suppress(t, l.Registry, suppression.Request{Service: "notify", Address: "nobody@example.org", Reason: suppression.ReasonComplaint})
	suppress(t, l.Registry, suppression.Request{Service: "second", Address: "ada@example.org", Reason: suppression.ReasonComplaint})
	l.check("after bounces", "notify suppressed return soft_bounces| mail true false of ada")
	ask := suppression.Request{Service: "notify", Address: "ada@example.org", Reason: suppression.ReasonManual}
	for range 2 {
		record, err := l.CheckSuppression(&ask)
		if err == nil {
			_, err = l.SuppressRecords(ctx, []suppression.Record{record})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	l.check("for a stronger reason, and the same again", "notify suppressed api manual| mail false false of ada")
	if err := l.Suppress(ctx, []suppression.Request{{Address: "ada@example.org", Reason: suppression.ReasonComplaint}}); err != nil {
		t.Fatal(err)
	}
	l.check("for all services", "notify suppressed return complaint| mail false true of ada")
	for range 2 {
		if err := l.Unsuppress(ctx, "notify", "ada@example.org"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Unsuppress(ctx, "", "ada@example.org"); err != nil {
		t.Fatal(err)
	}
	l.check("lifted", "notify lifted api manual| mail false false of ada", "notify lifted api complaint| mail false true of ada")
}

// A suppression is reported for every spelling of the address, as long as a subscriber has it.
func TestASuppressionIsToldOfWhoSpellsTheAddressOtherwise(t *testing.T) {
	ctx, place := t.Context(), storetest.Place(t)
	l := listen(t, place)
	apply(t, l.Registry, hearing)
	l.hear(fanfare.TopicSuppressions)
	if err := person(t, l.Registry, "ada", "Ada.L@example.org"); err != nil {
		t.Fatal(err)
	}
	good(t, putAll(t, l.Registry, people.SubscriptionPut{ID: "small", Topic: "change", Channel: "email", To: "bob@example.org"},
		people.SubscriptionPut{ID: "large", Topic: "change", Channel: "email", To: "BOB@example.org"}))
	told := func(what, address string, want int) {
		t.Helper()
		suppress(t, l.Registry, suppression.Request{Service: "notify", Address: address, Reason: suppression.ReasonComplaint})
		if got := l.news(); len(got) != want {
			t.Errorf("%s: told are %q, want %d", what, got, want)
		}
		if err := l.Unsuppress(ctx, "notify", address); err != nil {
			t.Fatal(err)
		}
		if got := l.news(); len(got) != want {
			t.Errorf("%s, lifted: told are %q, want %d", what, got, want)
		}
	}
	for range 2 {
		for _, address := range []string{"ada.l@example.org", "Ada.L@example.org", "ADA.L@EXAMPLE.ORG"} {
			told("a person", address, 1)
		}
		for _, address := range []string{"bob@example.org", "BOB@example.org", "Bob@Example.org"} {
			told("two who spell it in two ways", address, 2)
		}
		l.Close()
		l = listen(t, place)
	}
	if err := person(t, l.Registry, "ada", "Other@example.org"); err != nil {
		t.Fatal(err)
	}
	told("the address is hers no more", "ada.l@example.org", 0)
	told("the new one is", "other@EXAMPLE.org", 1)
	if err := person(t, l.Registry, "ada", "Ada.L@example.org"); err != nil {
		t.Fatal(err)
	}
	told("hers again", "ada.l@example.org", 1)
	e, err := l.BeginErasure(ctx, "notify", "ada", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.FinishErasures(ctx, []registry.Erasure{e}); err != nil {
		t.Fatal(err)
	}
	told("forgotten", "ada.l@example.org", 0)
}

// There are no notices about erased subscribers, and notices that wait do not contain their
// names.
func TestNothingThatWaitsToBeToldNamesWhoIsForgotten(t *testing.T) {
	l := listen(t, storetest.Place(t))
	apply(t, l.Registry, hearing)
	l.hear(fanfare.TopicSubscriptions, fanfare.TopicSuppressions)
	places := l.ada()
	if err := l.EndSubscription(t.Context(), "notify", "a", ""); err != nil {
		t.Fatal(err)
	}
	of, err := findSubscriber(l.Registry, "ada")
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.BeginErasure(t.Context(), "notify", "ada", true)
	if err != nil {
		t.Fatal(err)
	}
	want := "notify unsubscribed api | change email " + fanfare.SubscriptionID(places[0]) + " [] of " + people.SubscriberID(of)
	plan, err := l.kept.PlanNotices(t.Context(), 10)
	if err != nil || len(plan) != 1 {
		t.Fatal(plan, err)
	}
	names, err := l.NoticeNames(t.Context(), plan[0].Notices)
	if err != nil || len(names) != 1 || names[0].Subscriber != people.SubscriberID(of) || names[0].Subscription != fanfare.SubscriptionID(places[0]) {
		t.Errorf("while she is being forgotten: %+v: %v", names, err)
	}
	if err := l.FinishErasures(t.Context(), []registry.Erasure{e}); err != nil {
		t.Fatal(err)
	}
	l.check("of who was forgotten", want)
}

// Notices about a list of thousands are stored in a few rows, only for subscribers of the service.
func TestManySuppressionsAtOnceAreKeptInFewRows(t *testing.T) {
	const many = 5000
	l := listen(t, storetest.Place(t))
	apply(t, l.Registry, hearing)
	l.hear(fanfare.TopicSuppressions)
	puts, records := make([]people.SubscriptionPut, many), make([]suppression.Record, 2*many)
	for i := range puts {
		puts[i] = people.SubscriptionPut{Topic: "change", Channel: "email", To: fmt.Sprintf("p%d@example.org", i)}
	}
	good(t, putAll(t, l.Registry, puts...))
	for i := range records {
		var err error
		if records[i], err = l.CheckSuppression(&suppression.Request{Service: "notify", Address: fmt.Sprintf("p%d@example.org", i), Reason: suppression.ReasonImported}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.SuppressRecords(context.Background(), records); err != nil {
		t.Fatal(err)
	}
	plan, err := l.kept.PlanNotices(t.Context(), 10)
	if err != nil || len(plan) != 3 {
		t.Errorf("%d rows: %v", len(plan), err)
	}
	waiting, since, err := l.kept.WaitingNotices(t.Context())
	if err != nil || waiting != many || since.IsZero() {
		t.Errorf("%d wait since %v: %v", waiting, since, err)
	}
	seen := map[string]bool{}
	for _, line := range l.news() {
		seen[line] = true
	}
	if len(seen) != many {
		t.Errorf("%d were told", len(seen))
	}
}
