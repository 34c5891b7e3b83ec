package storetest_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestCloseWaitsForRunningTransactionsAndRefusesNewOnes(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		day, control := partOf(t, db, today), db.Control()
		var ended atomic.Int64
		closed := make(chan error)
		inside, release := make(chan struct{}), make(chan struct{})
		var work sync.WaitGroup
		hold := func(run func(context.Context, func(store.Session) error) error, fn func(store.Session) error) {
			work.Go(func() {
				err := run(context.Background(), func(s store.Session) error {
					err := fn(s)
					inside <- struct{}{}
					<-release
					ended.Add(1)
					return err
				})
				if err != nil {
					t.Errorf("what was under way: %v", err)
				}
			})
			<-inside
		}
		hold(day.Write, func(s store.Session) error { return putBlobs(s, []byte("x"), 1) })
		hold(control.Write, func(s store.Session) error { return s.Run("change_seq_set", int64(7)) })
		hold(day.Read, func(s store.Session) error { _, err := numbers(s); return err })
		go func() {
			err := db.Close()
			if n := ended.Load(); n != 3 {
				t.Errorf("it is closed when %d of 3 have ended", n)
			}
			closed <- err
		}()
		for control.Read(t.Context(), func(store.Session) error { return nil }) == nil {
			runtime.Gosched() // until it has begun to close
		}
		close(release)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		work.Wait()
		if err := db.Close(); err != nil {
			t.Errorf("a second time: %v", err)
		}
		late := map[string]error{}
		for name, run := range ways(day) {
			late[name+" of a day"] = run(t.Context(), func(store.Session) error { return errOurs })
		}
		for name, run := range ways(control) {
			late[name+" of control"] = run(t.Context(), func(store.Session) error { return errOurs })
		}
		_, late["a day"] = db.Day(t.Context(), today, true)
		_, late["the list of days"] = db.Days(t.Context())
		late["removal"] = db.RemoveDay(t.Context(), today)
		for name, err := range late {
			if fanfare.CodeOf(err) != fanfare.Unavailable || errors.Is(err, errOurs) {
				t.Errorf("%s after the end: %v", name, err)
			}
		}
		if kept := keptNumbers(t, partOf(t, storetest.OpenAt(t, place), today)); !slices.Equal(kept, []int64{1}) {
			t.Errorf("kept are %v", kept)
		}
	})
}
