package deliver

import (
	"context"
	"testing"
	"testing/synctest"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// TestAConnectionHasTheNextMessageInHandUnlessARateIsKept is about the half of the
// speed: only with the next message in hand can a connection write its envelope
// with the body before.
func TestAConnectionHasTheNextMessageInHandUnlessARateIsKept(t *testing.T) {
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
				s := settings(driverFunc(func(ctx context.Context, queue driver.Queue) error {
					first, err := queue.Next(ctx, true)
					if first == nil {
						return err
					}
					second, _ := queue.Next(ctx, false)
					got <- second != nil
					<-ctx.Done()
					for _, message := range []*driver.Message{second, first} {
						if message != nil {
							queue.Return(message)
						}
					}
					return nil
				}))
				s.Rate, s.Connections = c.rate, 1
				b := newBench(t, gateFunc(open), s)
				b.Submit(b.batch(fanfare.Normal, 10))
				if ahead := <-got; ahead != c.ahead {
					t.Errorf("the connection had a message ahead: %v, want %v", ahead, c.ahead)
				}
				b.Stop()
			})
		})
	}
}
