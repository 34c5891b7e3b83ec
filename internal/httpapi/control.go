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
		{"pause", "Pause sending in a scope until it is resumed", Switches.Pause},
		{"resume", "Resume sending in a paused scope", Switches.Resume},
		{"cancel", "Cancel the messages in a scope that have not been sent yet", Switches.Cancel},
	} {
		op := huma.Operation{OperationID: s.id, Method: http.MethodPost, Path: "/v1/" + s.id, Tags: []string{"operations"}, Summary: s.summary,
			Description: "A key of one service can use only its own service, channels and broadcasts as the scope; the scope all needs an operator key.",
			Parameters:  []*huma.Param{service()}, RequestBody: body[wire.Control](a, "The scope, and the reason", "application/json")}
		replies[any](a, &op, http.StatusNoContent, "Done; it remains in force after a restart")
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
			if scope.Kind == fanfare.ScopeBroadcast || s.id == "cancel" { // the registry records the others
				a.note(r.Context(), audit.Operation{Service: a.serviceOf(r.Context(), scope), Action: s.id, Kind: string(scope.Kind), Name: scope.Name}, nil)
			}
			x.WriteHeader(http.StatusNoContent)
			return nil
		})
	}
}

// reach checks that the caller may use the scope, and returns it with its full name.
func (a *API) reach(ctx context.Context, c caller, s fanfare.Scope) (fanfare.Scope, error) {
	if s.Kind != fanfare.ScopeAll && s.Name == "" {
		return s, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scope/name", Message: "must not be empty", Hint: "set it to a service, service/channel or event id"}
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
		if !strings.Contains(s.Name, "/") { // only the channel
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

// serviceOf returns the service of a scope, or "" for the scope all.
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

// tooFar returns the error for a scope outside the service of the request.
func (c caller) tooFar() error {
	e := &fanfare.Error{Code: fanfare.Forbidden, Pointer: "/scope", Message: "the key is for service " + c.service + ", but the scope includes other services",
		Hint: "use an operator key: a key for all services with the scope admin"}
	if c.principal.Service == "" {
		e.Code, e.Message = fanfare.Invalid, "the request is for service "+c.service+", but the scope includes other services"
		e.Hint = "omit the header X-Fanfare-Service and ?service=, or use a scope within that service"
	}
	return e
}
