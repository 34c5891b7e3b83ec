package statusfeed

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// source is a status that tests change with set.
type source struct {
	mu       sync.Mutex
	version  string
	fail     error
	computed int
}

func (s *source) feed() *Feed {
	return New(Options{
		Compute: func(context.Context) (wire.Status, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.computed++
			return wire.Status{Version: s.version}, s.fail
		},
		Status: func(status wire.Status, of View) ([]byte, error) {
			return json.Marshal(map[string]string{"version": status.Version, "service": of.Service})
		},
		Problem: func(err error) []byte { return []byte(`{"detail":"` + err.Error() + `"}`) },
		Started: time.UnixMilli(1_700_000_000_000),
	})
}

func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func join(t *testing.T, f *Feed, key string, of View) *Listener {
	t.Helper()
	l, err := f.Join(key, of)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func textOf(l *Listener) string {
	event, _ := l.Latest()
	if event == nil {
		return ""
	}
	return string(event.Text)
}

func TestOneComputationServesAllListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{version: "1"}
		f := s.feed()
		<-time.After(time.Minute)
		if s.computed != 0 {
			t.Errorf("%d computations without a listener", s.computed)
		}
		var all []*Listener
		for range 10 {
			all = append(all, join(t, f, "key-1", View{}), join(t, f, "key-2", View{Service: "news"}))
		}
		<-time.After(10*Interval - time.Millisecond)
		synctest.Wait()
		if s.computed != 10 {
			t.Errorf("%d computations in 10 intervals", s.computed)
		}
		first, _ := all[0].Latest()
		if other, _ := all[2].Latest(); first == nil || other != first {
			t.Error("listeners with the same view do not share their event")
		}
		if text := textOf(all[1]); !strings.Contains(text, `"service":"news"`) {
			t.Errorf("a listener of one service has %q", text)
		}
		for _, l := range all {
			l.Leave()
			l.Leave()
		}
		synctest.Wait()
		<-time.After(time.Minute)
		if s.computed != 10 || len(f.views) != 0 || len(f.perKey) != 0 || f.total != 0 {
			t.Errorf("%d computations, %d views, %d keys after the last listener has left", s.computed, len(f.views), len(f.perKey))
		}
	})
}

func TestOnlyAChangeIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{version: "1"}
		f := s.feed()
		l := join(t, f, "key-1", View{})
		defer l.Leave()
		synctest.Wait()
		first, changed := l.Latest()
		if want := "id: loyw3v28-1\nevent: status\ndata: {\"service\":\"\",\"version\":\"1\"}\n\n"; string(first.Text) != want {
			t.Errorf("the first event is %q, want %q", first.Text, want)
		}
		<-time.After(3 * Interval)
		synctest.Wait()
		select {
		case <-changed:
			t.Error("an unchanged status is an event")
		default:
		}
		s.set(func() { s.version = "2" })
		<-changed
		if text := textOf(l); !strings.Contains(text, `"version":"2"`) || !strings.Contains(text, "-2\n") {
			t.Errorf("after a change: %q", text)
		}
	})
}

func TestALaterListenerGetsTheLastStatusAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{version: "1"}
		f := s.feed()
		defer join(t, f, "key-1", View{}).Leave()
		synctest.Wait()
		l := join(t, f, "key-1", View{Service: "news"})
		defer l.Leave()
		if text := textOf(l); !strings.Contains(text, `"service":"news"`) || s.computed != 1 {
			t.Errorf("after %d computations: %q", s.computed, text)
		}
	})
}

func TestAFailureIsAnEventAndEndsWithTheNextStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{version: "1"}
		f := s.feed()
		l := join(t, f, "key-1", View{})
		defer l.Leave()
		synctest.Wait()
		_, changed := l.Latest()
		s.set(func() { s.fail = errors.New("no database") })
		<-changed
		if text := textOf(l); !strings.Contains(text, "event: unavailable\ndata: {\"detail\":\"no database\"}\n\n") {
			t.Errorf("after a failure: %q", text)
		}
		_, changed = l.Latest()
		s.set(func() { s.fail = nil })
		<-changed
		if text := textOf(l); !strings.Contains(text, "event: status\n") {
			t.Errorf("after the failure: %q", text)
		}
	})
}

func TestListenersAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := (&source{}).feed()
		var all []*Listener
		for n := range MaxListeners {
			all = append(all, join(t, f, string(rune('a'+n/MaxPerKey)), View{}))
		}
		if _, err := f.Join("a", View{}); fanfare.CodeOf(err) != fanfare.RateLimited {
			t.Errorf("one more of a key: %v", err)
		}
		if _, err := f.Join("z", View{}); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("one more of the server: %v", err)
		}
		all[0].Leave()
		all = append(all[1:], join(t, f, "a", View{}))
		for _, l := range all {
			l.Leave()
		}
	})
}
