package registry_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func mails(addresses ...string) people.SubscriberPut {
	var p people.SubscriberPut
	for _, a := range addresses {
		p.Addresses = append(p.Addresses, people.Address{Kind: "mail", Address: a})
	}
	return p
}

// everybody lists all subscribers with all their subscriptions.
func everybody(t *testing.T, r *registry.Registry) (subscribers []people.Subscriber, subscriptions []people.Subscription) {
	t.Helper()
	for after, more := fanfare.RowID(0), true; more; {
		page, next, err := r.SubscriberPage(t.Context(), "notify", after, 7)
		if err != nil {
			t.Fatal(err)
		}
		subscribers = append(subscribers, page...)
		after, more = next, next != 0
	}
	for after, more := fanfare.RowID(0), true; more; {
		page, next, err := r.SubscriptionPage(t.Context(), "notify", people.SubscriptionFilter{}, after, 7)
		if err != nil {
			t.Fatal(err)
		}
		subscriptions = append(subscriptions, page...)
		after, more = next, next != 0
	}
	return subscribers, subscriptions
}

// Concurrent changes mostly share transactions. If one of them fails after it has changed
// something, it has no effect, and the others remain.
func TestAChangeOfASubscriberThatFailsLeavesTheOthersOfItsTransaction(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	if _, _, err := r.PutSubscriber(t.Context(), "notify", "owner", mails("taken@example.org"), nil); err != nil {
		t.Fatal(err)
	}
	before := r.ChangeSeq()
	const n = 120
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			p := mails(fmt.Sprintf("first%d@example.org", i), fmt.Sprintf("second%d@example.org", i))
			if i%3 == 0 {
				p = mails(fmt.Sprintf("first%d@example.org", i), "taken@example.org")
			}
			_, created, err := r.PutSubscriber(context.Background(), "notify", fmt.Sprint("person-", i), p, nil)
			if failed := fanfare.CodeOf(err) == fanfare.Conflict; failed != (i%3 == 0) || created == failed {
				t.Errorf("person %d: created %t, %v", i, created, err)
			}
		})
	}
	all.Wait()
	t.Logf("%d changes took %d transactions", n*2/3, r.ChangeSeq()-before)
	people, _ := everybody(t, r)
	if len(people) != 1+n*2/3 {
		t.Errorf("%d people, want %d", len(people), 1+n*2/3)
	}
	for i := range n {
		if _, created, err := r.PutSubscriber(t.Context(), "notify", fmt.Sprint("person-", i), mails(fmt.Sprintf("first%d@example.org", i)), nil); err != nil || created != (i%3 == 0) {
			t.Errorf("person %d afterwards: created %t, %v", i, created, err)
		}
	}
}

// In TestSubscribersThatChangeAtOnceKeepTheirOrder, people concurrently take over each
// other's addresses, subscribe and unsubscribe. It checks the result, also after a
// restart.
func TestSubscribersThatChangeAtOnceKeepTheirOrder(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	var conflicts, ended atomic.Int64
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 150 {
				id := fmt.Sprint("person-", random.IntN(20))
				address := func() string { return fmt.Sprintf("box%d@example.org", random.IntN(30)) }
				var err error
				switch random.IntN(6) {
				case 0:
					if err = r.DeleteSubscriber(context.Background(), "notify", id, nil); err == nil {
						ended.Add(1)
					}
				case 1, 2:
					results := make([]people.PutResult, 1)
					err = r.PutSubscriptions(context.Background(), "notify", []people.SubscriptionPut{{Topic: "change", Channel: "email", To: address(), Filter: "event.mag > 3.0"}}, results)
					if err == nil {
						err = results[0].Err
					}
				default:
					_, _, err = r.PutSubscriber(context.Background(), "notify", id, mails(address(), address(), address()), nil)
				}
				switch fanfare.CodeOf(err) {
				case fanfare.Conflict, fanfare.Invalid: // somebody else's address; the same one twice
					conflicts.Add(1)
				default:
					if err != nil {
						t.Errorf("%v", err)
					}
				}
			}
		})
	}
	all.Wait()
	if conflicts.Load() == 0 || ended.Load() == 0 {
		t.Fatalf("%d conflicts, %d ends: nothing was tried", conflicts.Load(), ended.Load())
	}
	subscribers, subscriptions := everybody(t, r)
	owner := map[string]string{}
	for _, p := range subscribers {
		for _, a := range p.Addresses {
			if owner[a.Address] != "" {
				t.Errorf("%s belongs to %s and to %s", a.Address, owner[a.Address], p.ID)
			}
			owner[a.Address] = p.ID
		}
	}
	active := 0
	of := map[string][]people.Subscription{}
	for _, s := range subscriptions {
		if s.State == "active" {
			if active++; owner[s.To] != s.Subscriber {
				t.Errorf("%s of %s goes to %s, which is of %q", s.ID, s.Subscriber, s.To, owner[s.To])
			}
		}
		of[s.Subscriber] = append(of[s.Subscriber], s)
	}
	if active == 0 {
		t.Fatal("nobody is subscribed")
	}
	for _, p := range subscribers {
		page, next, err := r.SubscriptionPage(t.Context(), "notify", people.SubscriptionFilter{Subscriber: p.ID}, 0, 1000)
		if err != nil || next != 0 || !reflect.DeepEqual(page, of[p.ID]) && len(page)+len(of[p.ID]) > 0 {
			t.Errorf("%s has %+v (%v), want %+v", p.ID, page, err, of[p.ID])
		}
	}
	r.Close()
	again, _ := openAt(t, place)
	if people2, subscriptions2 := everybody(t, again); !reflect.DeepEqual(subscribers, people2) || !reflect.DeepEqual(subscriptions, subscriptions2) {
		t.Error("a restart has changed something")
	}
}
