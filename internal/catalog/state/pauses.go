package state

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

// pauseBody is the stored form of a pause.
type pauseBody struct {
	Scope  fanfare.Scope `json:"scope"`
	Paused bool          `json:"paused"`
	Reason string        `json:"reason,omitempty"`
	Since  time.Time     `json:"since"`
	By     string        `json:"by,omitempty"`
}

// pauses holds all scopes that were ever paused.
type pauses struct {
	mu   sync.RWMutex
	all  map[fanfare.Scope]storedPause
	last uint32 // number of the last one
}

type storedPause struct {
	number uint32
	pauseBody
}

func (s *pauses) set(number uint32, body pauseBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[fanfare.Scope]storedPause{}
	}
	s.all[body.Scope] = storedPause{number, body}
	s.last = max(s.last, number)
}

func (s *pauses) get(scope fanfare.Scope) (storedPause, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	one, ok := s.all[scope]
	return one, ok
}

// SetPaused pauses or resumes a scope. It is durable when it returns.
func (r *Catalog) SetPaused(ctx context.Context, scope fanfare.Scope, paused bool, reason string) error {
	return r.writer.Run(ctx, func() error {
		if err := r.checkScope(scope); err != nil {
			return err
		}
		was, known := r.pauses.get(scope)
		if was.Paused == paused && (!paused || was.Reason == catalog.CleanReason(reason)) {
			return nil
		}
		number := was.number
		if !known {
			number = r.pauses.last + 1
		}
		now := pauseBody{Scope: scope, Paused: paused, Reason: catalog.CleanReason(reason), Since: r.opt.Apply.Now().UTC(), By: audit.ActorOf(ctx).Title()}
		body, err := json.Marshal(now)
		if err != nil {
			return err
		}
		record := control.ConfigRecord{Kind: catalog.KindSwitch, Number: number, Name: string(scope.Kind) + " " + scope.Name, Body: body}
		b := control.Batch{Config: []control.ConfigRecord{record}}
		b.AddAudit(audit.ActorOf(ctx), pauseOperation(scope, paused), nil)
		if err := r.writer.Commit(&b); err != nil {
			return err
		}
		r.pauses.set(number, now)
		return nil
	})
}

// pauseOperation returns the audit operation of a pause. It leaves out the reason, which is free
// text and could name people.
func pauseOperation(scope fanfare.Scope, paused bool) audit.Operation {
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

// checkScope refuses a scope that does not exist. It does not check whether an event exists.
func (r *Catalog) checkScope(scope fanfare.Scope) error {
	conf := r.config.Load()
	switch scope.Kind {
	case fanfare.ScopeAll:
		if scope.Name == "" {
			return nil
		}
	case fanfare.ScopeService:
		_, err := conf.Service(scope.Name)
		return err
	case fanfare.ScopeChannel:
		_, err := conf.ChannelNamed(scope.Name)
		return err
	case fanfare.ScopeRelay:
		names := strings.SplitN(scope.Name, "/", 3)
		if len(names) < 3 {
			return inputerror.Invalid("", "write service/channel/relay", "%s is not the name of a relay", inputerror.Quote(scope.Name))
		}
		channel, err := conf.ChannelNamed(names[0] + "/" + names[1])
		if err != nil {
			return err
		}
		if !channel.HasHop(names[2]) {
			return &fanfare.Error{Code: fanfare.NotFound, Message: "the channel has no relay " + inputerror.Quote(names[2]), Hint: "to list the relays, run `fanfare relay list`"}
		}
		return nil
	case fanfare.ScopeBroadcast:
		if _, ok := fanfare.ParseEventRef(scope.Name); ok {
			return nil
		}
		return inputerror.Invalid("", "use the id of the event, evt-…", "%s is not the id of an event", inputerror.Quote(scope.Name))
	}
	return inputerror.Invalid("", "use all, service, channel, relay or broadcast", "unknown scope %s", inputerror.Quote(string(scope.Kind)+" "+scope.Name))
}

// Paused lists the paused scopes, the longest pause first.
func (r *Catalog) Paused() []catalog.PausedScope {
	r.pauses.mu.RLock()
	defer r.pauses.mu.RUnlock()
	var paused []catalog.PausedScope
	for _, s := range r.pauses.all {
		if s.Paused {
			paused = append(paused, catalog.PausedScope{Scope: s.Scope, Reason: s.Reason, Since: s.Since, By: s.By})
		}
	}
	slices.SortFunc(paused, func(a, b catalog.PausedScope) int { return a.Since.Compare(b.Since) })
	return paused
}

func (r *Catalog) loadSwitch(c *control.ConfigRecord) error {
	var body pauseBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	r.pauses.set(c.Number, body)
	return nil
}
