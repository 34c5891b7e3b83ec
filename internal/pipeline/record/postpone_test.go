package record

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

func putOff(ref fanfare.EventRef, position uint32, at time.Time) fanfare.Due {
	return fanfare.Due{At: at, Channel: 7, Lane: fanfare.Bulk, Slice: fanfare.RecipientRange{
		Manifest: fanfare.NewManifestID(ref.Seq, 0), Positions: []uint32{position}, Attempt: 1,
	}}
}

func TestWorkThatIsPutOffIsKeptWithoutAnEntryAndCountsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.Begin(event, 3, fanfare.Progress{})
		at := time.Now().UTC().Add(time.Hour)
		dues := []fanfare.Due{putOff(event, 1, at.Add(time.Minute)), putOff(event, 2, at)}
		if err := b.Postpone(today, dues); err != nil {
			t.Fatal(err)
		}
		kept := b.store.kept()
		if len(kept) != 1 || len(kept[0].Entries) != 0 || len(kept[0].Dues) != 2 || len(kept[0].Completions) != 0 || b.store.days[0] != today {
			t.Errorf("kept %+v of %v", kept, b.store.days)
		}
		if progress, open := b.Progress(event); !open || progress.Counts[fanfare.Pending] != 3 || !progress.First.IsZero() {
			t.Errorf("the broadcast has come to %+v", progress)
		}
		synctest.Wait() // it is told of beside who waits
		b.mu.Lock()
		told := b.dues[today]
		b.mu.Unlock()
		if len(told) != 1 || !told[0].Equal(at) {
			t.Errorf("told of work due at %v, want the earliest, %v", told, at)
		}
		if err := b.Postpone(today, nil); err != nil || len(b.store.kept()) != 1 {
			t.Errorf("nothing put off made %d commits, %v", len(b.store.kept()), err)
		}
	})
}

func TestWorkThatIsPutOffSharesTheCommitOfEntries(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		var callers sync.WaitGroup
		end := b.committing(t, &callers)
		callers.Go(func() { b.record(t, event, 1, 1, fanfare.Accepted) })
		callers.Go(func() {
			if err := b.Postpone(today, []fanfare.Due{putOff(event, 2, time.Now())}); err != nil {
				t.Error(err)
			}
		})
		callers.Go(func() {
			if err := b.Postpone(today+1, []fanfare.Due{putOff(tomorrow, 2, time.Now())}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		end()
		callers.Wait()
		shared := 0
		for i, c := range b.store.kept()[1:] {
			if b.store.days[i+1] == today && len(c.Entries) == 1 && len(c.Dues) == 1 {
				shared++
			}
			if b.store.days[i+1] == today+1 && (len(c.Entries) != 0 || len(c.Dues) != 1) {
				t.Errorf("the other day has %+v", c)
			}
		}
		if shared != 1 || len(b.store.kept()) != 3 {
			t.Errorf("commits %+v", b.store.kept()[1:])
		}
	})
}

func TestNothingIsPutOffOnceTheRecorderHasStopped(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.Stop()
		if err := b.Postpone(today, []fanfare.Due{putOff(event, 1, time.Now())}); err == nil {
			t.Error("put off after the end")
		}
	})
}
