package deliver

import (
	"context"
	"testing"
	"testing/synctest"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
)

// TestAConnectionHasTheNextLetterInHandUnlessARateIsKept is about the half of the
// speed: only with the next letter in hand can a connection write its envelope
// with the body before.
func TestAConnectionHasTheNextLetterInHandUnlessARateIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		rate  rate.Limit
		ahead bool
	}{
		"unlimited": {rate.Inf, true},
		"a rate":    {1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := make(chan bool, 1)
				s := settings(driverFunc(func(ctx context.Context, desk fanfare.Desk) error {
					first, err := desk.Next(ctx, true)
					if first == nil {
						return err
					}
					second, _ := desk.Next(ctx, false)
					got <- second != nil
					<-ctx.Done()
					for _, letter := range []*fanfare.Letter{second, first} {
						if letter != nil {
							desk.Return(letter)
						}
					}
					return nil
				}))
				s.Rate, s.Connections = c.rate, 1
				b := newBench(t, gateFunc(open), s)
				b.Submit(b.batch(fanfare.Normal, 10))
				if ahead := <-got; ahead != c.ahead {
					t.Errorf("the connection had a letter ahead: %v, want %v", ahead, c.ahead)
				}
				b.Stop()
			})
		})
	}
}
