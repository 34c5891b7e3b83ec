package move

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// frozen is a database that does not answer who wants a new day.
type frozen struct {
	store.Database
	over chan struct{}
}

func (f frozen) Day(_ context.Context, of fanfare.Day, create bool) (store.Part, error) {
	if create {
		<-f.over
	}
	return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "no day " + of.String()}
}

// Nobody waits longer than they have time for somebody else's database.
func TestWaitingForADayCanBeCancelled(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Switch) error{
		"for a day": func(ctx context.Context, s *Switch) error {
			_, err := s.Day(ctx, 20777, true)
			return err
		},
		"for the removal of one": func(ctx context.Context, s *Switch) error { return s.RemoveDay(ctx, 20777) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				s := NewSwitch(Side{DB: frozen{over: over}})
				first := make(chan error, 1)
				go func() {
					_, err := s.Day(context.Background(), 20778, true)
					first <- err
				}()
				synctest.Wait()
				ctx, hangUp := context.WithCancel(context.Background())
				second := make(chan error, 1)
				go func() { second <- call(ctx, s) }()
				synctest.Wait()
				if len(first)+len(second) > 0 {
					t.Fatal("nobody had to wait")
				}
				hangUp()
				synctest.Wait()
				if len(second) == 0 {
					t.Error("who had gone still waits")
				}
				close(over)
				if err := <-second; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				<-first
			})
		})
	}
}

func TestWaitingForAWriterCanBeCancelledDuringAMove(t *testing.T) {
	j := newJournal(&budget{})
	j.order.Lock() // a writer whose database says nothing
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if err := j.keep(gone, nil, wayWrite, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
