package jmap

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/jmap/push"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Bounds of event streams.
const (
	maxPing      = 300 * time.Second
	streamWrites = 20 * time.Second // in which a client must read an event
)

// eventRequest are the parameters of an event stream.
type eventRequest struct {
	types      []string // nil: all
	closeAfter bool
	ping       time.Duration // 0: none
	known      mailbox.ModSeq
}

func (s *Server) eventRequest(r *http.Request) (e eventRequest, err error) {
	query := r.URL.Query()
	invalid := func(name, why string) (eventRequest, error) {
		return e, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter " + name + " " + why, Hint: "use the eventSourceUrl of the session"}
	}
	types := query.Get("types")
	if types == "" {
		return invalid("types", "is missing: set it to * or to a list of types")
	}
	if types != "*" {
		e.types = []string{}
		for name := range strings.SplitSeq(types, ",") {
			if slices.Contains(push.Types, name) {
				e.types = append(e.types, name)
			}
		}
	}
	switch query.Get("closeafter") {
	case "state":
		e.closeAfter = true
	case "no", "":
	default:
		return invalid("closeafter", "must be state or no")
	}
	if text := query.Get("ping"); text != "" && text != "0" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return invalid("ping", "must be a number of seconds")
		}
		e.ping = min(maxPing, max(s.o.PingInterval, time.Duration(seconds)*time.Second))
	}
	e.known = stateIn(r.Header.Get("Last-Event-ID"))
	return e, nil
}

// stateIn reads the state that a client knows; 0 if it knows none.
func stateIn(text string) mailbox.ModSeq {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return mailbox.ModSeq(n)
}

// events sends the changes of an account until the client disconnects (RFC 8620, section 7.3).
func (s *Server) events(w http.ResponseWriter, r *http.Request, c *call) error {
	e, err := s.eventRequest(r)
	if err != nil {
		return err
	}
	free, ok := s.acquire(c.account.ID, streams, maxStreams)
	if !ok {
		return &fanfare.Error{Code: fanfare.RateLimited, Message: fmt.Sprintf("the account has %d event streams, which is the maximum", maxStreams), Hint: "close one first"}
	}
	defer free()
	watcher, err := push.Watch(r.Context(), s.o.Store, c.account.ID, e.types, e.known)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	c.release()
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{})
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies pass each event on at once
	w.WriteHeader(http.StatusOK)
	send := func(event, id string, data any) bool {
		text, err := json.Marshal(data)
		if err != nil {
			return false
		}
		var b strings.Builder
		b.WriteString("event: " + event + "\n")
		if id != "" {
			b.WriteString("id: " + id + "\n")
		}
		b.WriteString("data: " + string(text) + "\n\n")
		control.SetWriteDeadline(time.Now().Add(streamWrites))
		_, err = w.Write([]byte(b.String()))
		return err == nil && control.Flush() == nil
	}
	control.SetWriteDeadline(time.Now().Add(streamWrites))
	if control.Flush() != nil {
		return nil
	}
	var pings <-chan time.Time
	if e.ping > 0 {
		ticker := time.NewTicker(e.ping)
		defer ticker.Stop()
		pings = ticker.C
	}
	var ends <-chan time.Time
	if !c.until.IsZero() {
		timer := time.NewTimer(c.until.Sub(s.o.Clock.Now()))
		defer timer.Stop()
		ends = timer.C
	}
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-s.stopping:
			return nil
		case <-ends:
			return nil
		case <-pings:
			if !send("ping", "", map[string]int{"interval": int(e.ping / time.Second)}) {
				return nil
			}
		case <-watcher.Changed():
			change, err := watcher.Next(r.Context())
			if errors.Is(err, push.ErrEnded) {
				return nil
			}
			if err != nil {
				s.o.Logger.Warn("an event stream ended, because the changes of its account could not be read", "err", err)
				return nil
			}
			if change == nil {
				continue
			}
			id := change.Push
			change.Push = ""
			if !send("state", id, change) || e.closeAfter {
				return nil
			}
		}
	}
}
