package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (a *API) controlRoutes() {
	for _, s := range []struct {
		id, summary string
		do          func(Switches, context.Context, fanfare.Scope, string) error
	}{
		{"pause", "Let nothing leave of what the scope reaches, until it is resumed", Switches.Pause},
		{"resume", "Let leave again what was paused", Switches.Resume},
		{"cancel", "Settle as cancelled what has not left yet", Switches.Cancel},
	} {
		op := huma.Operation{OperationID: s.id, Method: http.MethodPost, Path: "/v1/" + s.id, Tags: []string{"operations"}, Summary: s.summary,
			Description: "A key of a service reaches its own service, channels and broadcasts; everything needs the operator's key.",
			Parameters:  []*huma.Param{service()}, RequestBody: body[wire.Control](a, "What to reach", "application/json")}
		replies[any](a, &op, http.StatusNoContent, "Done, and kept over a restart")
		a.handle(op, mayConfigure, func(x *responseWriter, r *http.Request, c caller) error {
			var in wire.Control
			if err := httpio.ReadJSON(x, r, &in); err != nil {
				return err
			}
			scope, err := a.reach(r.Context(), c, in.Scope)
			if err != nil {
				return err
			}
			httpio.AllowLongResponse(x)
			if err := s.do(a.deps.Switches, r.Context(), scope, in.Reason); err != nil {
				return err
			}
			if scope.Kind == fanfare.ScopeBroadcast || s.id == "cancel" { // the others are the registry's, which notes them
				a.note(r.Context(), audit.Operation{Service: a.serviceOf(r.Context(), scope), Action: s.id, Kind: string(scope.Kind), Name: scope.Name}, nil)
			}
			x.WriteHeader(http.StatusNoContent)
			return nil
		})
	}
}

// reach checks that the caller may touch the scope, and names it in full.
func (a *API) reach(ctx context.Context, c caller, s fanfare.Scope) (fanfare.Scope, error) {
	if s.Kind != fanfare.ScopeAll && s.Name == "" {
		return s, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scope/name", Message: "must not be empty", Hint: "name the service, service/channel or event"}
	}
	switch s.Kind {
	case fanfare.ScopeAll:
		if c.service != "" {
			return s, c.tooFar()
		}
		s.Name = ""
	case fanfare.ScopeService:
		if c.service != "" && s.Name != c.service {
			return s, c.tooFar()
		}
	case fanfare.ScopeChannel:
		if !strings.Contains(s.Name, "/") { // the channel alone
			own, err := a.oneService(c)
			if err != nil {
				return s, err
			}
			s.Name = own + "/" + s.Name
		}
		if c.service != "" && !strings.HasPrefix(s.Name, c.service+"/") {
			return s, c.tooFar()
		}
	case fanfare.ScopeRelay:
		if strings.Count(s.Name, "/") == 1 { // channel/relay
			own, err := a.oneService(c)
			if err != nil {
				return s, err
			}
			s.Name = own + "/" + s.Name
		}
		if c.service != "" && !strings.HasPrefix(s.Name, c.service+"/") {
			return s, c.tooFar()
		}
	case fanfare.ScopeBroadcast:
		ref, _, err := a.event(ctx, c, s.Name)
		if err != nil {
			return s, err
		}
		s.Name = ref.String()
	default:
		return s, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scope/kind", Message: "unknown scope", Hint: "use all, service, channel, relay or broadcast"}
	}
	return s, nil
}

// serviceOf is the service that a scope lies in; "" for everything.
func (a *API) serviceOf(ctx context.Context, s fanfare.Scope) string {
	if s.Kind == fanfare.ScopeBroadcast {
		_, b, err := a.event(ctx, caller{}, s.Name)
		if err != nil {
			return ""
		}
		return b.Service
	}
	service, _, _ := strings.Cut(s.Name, "/")
	return service
}

// tooFar refuses a scope that lies outside the service that is meant.
func (c caller) tooFar() error {
	e := &fanfare.Error{Code: fanfare.Forbidden, Pointer: "/scope", Message: "the key is for service " + c.service + ", but the scope includes other services",
		Hint: "use the operator's key, which has the scope admin for all services"}
	if c.principal.Service == "" {
		e.Code, e.Message = fanfare.Invalid, "the request is for service "+c.service+", but the scope includes other services"
		e.Hint = "omit the header X-Fanfare-Service and ?service=, or name a scope within that service"
	}
	return e
}
