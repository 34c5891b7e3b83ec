package notifybc

import (
	"errors"
	"net/http"
	"net/netip"

	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
)

// ResourceRoutes returns the routes of administrators, configurations and the like as routes of an API. client returns the address of the
// client of a request.
func ResourceRoutes(client func(*http.Request) netip.Addr, list ...resource.Route) []Route {
	routes := make([]Route, len(list))
	for i, r := range list {
		routes[i] = Route{r.Method, r.Path, r.Who, func(x *Exchange) error {
			answer, err := r.Handle(&resource.Request{Request: x.Request, Caller: x.Caller, Client: client(x.Request)})
			if refusal, ok := errors.AsType[*roles.Refusal](err); ok {
				return &Failure{Status: refusal.Status, Message: refusal.Message, Kind: refusal.Kind}
			}
			switch {
			case err != nil:
				return err
			case answer.Body == nil:
				x.Writer.WriteHeader(answer.Status)
			default:
				writeJSON(x.Writer, answer.Status, answer.Body)
			}
			return nil
		}}
	}
	return routes
}
