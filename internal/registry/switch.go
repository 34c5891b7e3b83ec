package registry

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// switchBody is what is kept of a switch.
type switchBody struct {
	Scope  fanfare.Scope `json:"scope"`
	Paused bool          `json:"paused"`
	Reason string        `json:"reason,omitempty"`
	Since  time.Time     `json:"since"`
}

// switches are the scopes that were ever paused.
type switches struct {
	mu   sync.RWMutex
	all  map[fanfare.Scope]pauseSwitch
	last uint32 // number of the last one
}

type pauseSwitch struct {
	number uint32
	switchBody
}

func (s *switches) set(number uint32, body switchBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[fanfare.Scope]pauseSwitch{}
	}
	s.all[body.Scope] = pauseSwitch{number, body}
	s.last = max(s.last, number)
}

func (s *switches) get(scope fanfare.Scope) (pauseSwitch, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	one, ok := s.all[scope]
	return one, ok
}

// SetPaused pauses or resumes a scope. It is durable when it returns.
func (r *Registry) SetPaused(ctx context.Context, scope fanfare.Scope, paused bool, reason string) error {
	return r.writer.submit(ctx, &job{run: func(w *writer) error {
		if err := r.checkScope(scope); err != nil {
			return err
		}
		was, known := r.switches.get(scope)
		if was.Paused == paused && (!paused || was.Reason == clean(reason)) {
			return nil
		}
		number := was.number
		if !known {
			number = r.switches.last + 1
		}
		now := switchBody{Scope: scope, Paused: paused, Reason: clean(reason), Since: r.opt.Now().UTC()}
		body, err := json.Marshal(now)
		if err != nil {
			return err
		}
		record := control.ConfigRecord{Kind: kindSwitch, Number: number, Name: string(scope.Kind) + " " + scope.Name, Body: body}
		b := control.Batch{Config: []control.ConfigRecord{record}}
		b.AddAudit(audit.ActorOf(ctx), switchDeed(scope, paused), nil)
		if err := r.commit(&b); err != nil {
			return err
		}
		r.switches.set(number, now)
		return nil
	}})
}

// switchDeed is what the audit says of a switch. Its reason is free text, which
// could name people, so it is not told there.
func switchDeed(scope fanfare.Scope, paused bool) audit.Operation {
	d := audit.Operation{Action: "resume", Kind: string(scope.Kind), Name: scope.Name}
	if paused {
		d.Action = "pause"
	}
	if scope.Kind == fanfare.ScopeRelay {
		d.Action = map[bool]string{true: "drain", false: "restore"}[paused]
	}
	if scope.Kind != fanfare.ScopeAll {
		d.Service, _, _ = strings.Cut(scope.Name, "/")
	}
	return d
}

// checkScope refuses a scope that names nothing. Whether an event exists is not
// known here.
func (r *Registry) checkScope(scope fanfare.Scope) error {
	conf := r.config.Load()
	switch scope.Kind {
	case fanfare.ScopeAll:
		if scope.Name == "" {
			return nil
		}
	case fanfare.ScopeService:
		_, err := conf.service(scope.Name)
		return err
	case fanfare.ScopeChannel:
		_, err := conf.channelNamed(scope.Name)
		return err
	case fanfare.ScopeRelay:
		names := strings.SplitN(scope.Name, "/", 3)
		if len(names) < 3 {
			return inputerror.Invalid("", "write service/channel/relay", "%s names no relay", inputerror.Quote(scope.Name))
		}
		channel, err := conf.channelNamed(names[0] + "/" + names[1])
		if err != nil {
			return err
		}
		if !channel.hop(names[2]) {
			return &fanfare.Error{Code: fanfare.NotFound, Message: "the channel has no relay " + inputerror.Quote(names[2]), Hint: "`fanfare relay list` shows them"}
		}
		return nil
	case fanfare.ScopeBroadcast:
		if _, ok := fanfare.ParseEventRef(scope.Name); ok {
			return nil
		}
		return inputerror.Invalid("", "give the event's id, evt-…", "%s is not an event", inputerror.Quote(scope.Name))
	}
	return inputerror.Invalid("", "use all, service, channel, relay or broadcast", "unknown scope %s", inputerror.Quote(string(scope.Kind)+" "+scope.Name))
}

// channelNamed finds a channel by service/channel.
func (s *snapshot) channelNamed(name string) (*Channel, error) {
	service, channel, _ := strings.Cut(name, "/")
	svc, err := s.service(service)
	if err != nil {
		return nil, err
	}
	if svc.channels[channel] == nil {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "unknown channel " + inputerror.Quote(name), Hint: "write service/channel; fanfare channel list shows which there are"}
	}
	return svc.channels[channel], nil
}

// Paused lists what is paused, the longest first.
func (r *Registry) Paused() []PausedScope {
	r.switches.mu.RLock()
	defer r.switches.mu.RUnlock()
	var paused []PausedScope
	for _, s := range r.switches.all {
		if s.Paused {
			paused = append(paused, PausedScope{Scope: s.Scope, Reason: s.Reason, Since: s.Since})
		}
	}
	slices.SortFunc(paused, func(a, b PausedScope) int { return a.Since.Compare(b.Since) })
	return paused
}

func (r *Registry) loadSwitch(c *control.ConfigRecord) error {
	var body switchBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	r.switches.set(c.Number, body)
	return nil
}
