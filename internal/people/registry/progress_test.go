package registry_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// largeStore has subscribers beside those that it keeps.
type largeStore struct {
	*control.Store
	subscribers int
}

func (s largeStore) Load(ctx context.Context, v control.Loader) error {
	if err := s.Store.Load(ctx, v); err != nil {
		return err
	}
	for i := range s.subscribers {
		if err := v.Subscriber(&control.SubscriberRecord{Place: fanfare.NewRowID(0, uint32(i)), ID: fmt.Sprint("s", i), Service: 1}); err != nil {
			return err
		}
	}
	return nil
}

func TestALongLoadTellsTheLogHowFarItIs(t *testing.T) {
	var log bytes.Buffer
	at := &clock{at: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	_, _ = openAt(t, storetest.Place(t), func(o *registry.Options) {
		o.Store = largeStore{o.Store.(*control.Store), 5 * 4096}
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Now = func() time.Time { // it takes a second until the load looks at the clock again
			at.at = at.at.Add(time.Second)
			return at.at
		}
	})
	if text := log.String(); strings.Count(text, "loading subscriptions") != 2 || !strings.Contains(text, "subscribers=8192 subscriptions=0") || !strings.Contains(text, "subscribers=16384 subscriptions=0") {
		t.Errorf("the log says %q", text)
	}
}
