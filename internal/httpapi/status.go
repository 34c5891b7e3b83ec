package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (a *API) statusRoutes() {
	read(a, huma.Operation{OperationID: "get-status", Method: http.MethodGet, Path: "/v1/status", Tags: []string{"operations"},
		Summary: "Get the state of the server"}, mayRead,
		func(ctx context.Context, c caller, _ *Named) (wire.Status, error) {
			s, err := a.deps.Reports.Status(ctx)
			return statusFor(s, c.service, c.principal.Service == ""), err
		})
}

// statusFor returns the part of a status that a caller sees: everything, or one service.
func statusFor(s wire.Status, service string, whole bool) wire.Status {
	if service != "" {
		s = ofService(s, service, whole)
	}
	s.Broadcasts, s.Channels, s.Paused = orEmpty(s.Broadcasts), orEmpty(s.Channels), orEmpty(s.Paused)
	return s
}

// ofService removes the parts of s that belong to other services and, for keys of one
// service, the parts that concern the whole server.
func ofService(s wire.Status, service string, ofAll bool) wire.Status {
	if !ofAll {
		s.Restored, s.Cluster, s.Database, s.Inbound, s.MatchCheck, s.Suppressions, s.Untold = nil, nil, nil, nil, nil, 0, 0
	}
	s.Broadcasts = slices.DeleteFunc(slices.Clone(s.Broadcasts), func(b fanfare.Broadcast) bool { return b.Service != service })
	s.Channels = slices.DeleteFunc(slices.Clone(s.Channels), func(c wire.Channel) bool { return c.Service != service })
	s.Services = slices.DeleteFunc(slices.Clone(s.Services), func(l wire.ServiceLimits) bool { return l.Service != service })
	s.Gathered = slices.DeleteFunc(slices.Clone(s.Gathered), func(g wire.Gathered) bool { return g.Service != service })
	s.TemplateFaults = slices.DeleteFunc(slices.Clone(s.TemplateFaults), func(f wire.TemplateFault) bool { return f.Service != service })
	s.Workers = slices.DeleteFunc(slices.Clone(s.Workers), func(w wire.WorkerStatus) bool { return w.Service != service })
	own := map[string]bool{}
	for _, b := range s.Broadcasts {
		own[b.Event] = true
	}
	s.Paused = slices.DeleteFunc(slices.Clone(s.Paused), func(p wire.Paused) bool {
		switch p.Scope.Kind {
		case fanfare.ScopeService:
			return p.Scope.Name != service
		case fanfare.ScopeChannel, fanfare.ScopeRelay:
			return !strings.HasPrefix(p.Scope.Name, service+"/")
		case fanfare.ScopeBroadcast:
			return !own[p.Scope.Name]
		}
		return false
	})
	return s
}
