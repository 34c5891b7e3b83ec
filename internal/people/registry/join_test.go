package registry_test

import (
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
)

// decidedStep is a step that reports when the writer has decided on its last put.
func decidedStep(puts []people.SubscriptionPut) (decided chan struct{}) {
	decided = make(chan struct{}, 2) // told again where it is decided on anew
	puts[len(puts)-1].Check = func(*people.Subscription) error {
		decided <- struct{}{}
		return nil
	}
	return decided
}

// threeSteps begins three steps of three imports. While the first one is being committed,
// the second and then the third are decided.
func threeSteps(t *testing.T, r *registry.Registry, store *gatedStore, steps [3][]people.SubscriptionPut) (over [3]<-chan error, results [3][]people.PutResult) {
	t.Helper()
	for k, puts := range steps {
		results[k] = make([]people.PutResult, len(puts))
		decided := decidedStep(puts)
		over[k] = r.Import("notify").Begin(t.Context(), puts, results[k])
		<-decided
		if k == 0 {
			<-store.entered
		}
	}
	return over, results
}

func TestChangesDuringACommitAreOneTransaction(t *testing.T) {
	r, store, index := gated(t)
	const n = 600
	over, results := threeSteps(t, r, store, [3][]people.SubscriptionPut{step(1, n), step(2, n), step(3, n)})
	store.verdict <- nil
	<-store.entered
	store.verdict <- nil // a third transaction would wait for ever
	for k := range over {
		if err := <-over[k]; err != nil || !results[k][0].Created || !results[k][n-1].Created {
			t.Errorf("step %d: %v, %+v", k+1, err, results[k][0])
		}
	}
	if got := index.Len(condition.Key{Service: "notify", Topic: "change"}); got != 3*n {
		t.Errorf("the index has %d", got)
	}
}

func TestChangesAreDecidedAgainWhenTheGroupBeforeFails(t *testing.T) {
	r, store, index := gated(t)
	const n = 600
	over, results := threeSteps(t, r, store, [3][]people.SubscriptionPut{step(1, n), step(2, n), step(3, n)})
	store.verdict <- &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full"}
	<-store.entered
	store.verdict <- nil
	if err := <-over[0]; fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Errorf("the first: %v", err)
	}
	for k := 1; k < 3; k++ {
		if err := <-over[k]; err != nil || !results[k][0].Created || !results[k][n-1].Created {
			t.Errorf("step %d: %v, %+v", k+1, err, results[k][0])
		}
	}
	if got := index.Len(condition.Key{Service: "notify", Topic: "change"}); got != 2*n {
		t.Errorf("the index has %d", got)
	}
}

// In TestChangesThatJoinAGroupSeeItsChanges, two steps of one transaction change the
// same person, whose former row is in the store.
func TestChangesThatJoinAGroupSeeItsChanges(t *testing.T) {
	r, store, _ := gated(t)
	const n = 600
	kept := step(1, 1)
	first := r.Import("notify").Begin(t.Context(), kept, make([]people.PutResult, 1))
	<-store.entered
	store.verdict <- nil
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	speaking, living := step(3, n), step(4, n)
	speaking[0], living[0] = kept[0], kept[0]
	speaking[0].Locale, living[0].TimeZone = "de", "Europe/Berlin"
	over, results := threeSteps(t, r, store, [3][]people.SubscriptionPut{step(2, n), speaking, living})
	store.verdict <- nil
	<-store.entered
	store.verdict <- nil
	for k := range over {
		if err := <-over[k]; err != nil {
			t.Fatal(err)
		}
	}
	if results[1][0].Created || results[2][0].Created {
		t.Errorf("%+v, %+v", results[1][0], results[2][0])
	}
	place, err := findSubscriber(r, kept[0].To)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Subscribers(t.Context(), []fanfare.RowID{place}, func(s *people.SubscriberRow) error {
		if s.Locale != "de" || s.TimeZone != "Europe/Berlin" {
			t.Errorf("%+v", s)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
