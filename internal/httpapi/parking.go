package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (a *API) parkingRoutes() {
	tags := []string{"operations"}
	type one struct {
		Named
		ID string `path:"id" doc:"id of the parked work"`
	}
	read(a, huma.Operation{OperationID: "list-parked", Method: http.MethodGet, Path: "/v1/parked", Tags: tags,
		Summary: "List the work that failed repeatedly and waits for an operator"}, mayRead,
		func(ctx context.Context, c caller, in *Page) (wire.ParkedList, error) {
			all, err := a.parked(ctx, c)
			if err != nil {
				return wire.ParkedList{}, err
			}
			list, next, err := pageOf(listingOf("parked", c.service), in, all, func(p *fanfare.Parked) string { return parkedOrder(p.ID) })
			return wire.ParkedList{Parked: orEmpty(list), Next: next}, err
		})
	act(a, huma.Operation{OperationID: "retry-parked", Method: http.MethodPost, Path: "/v1/parked/{id}/retry", Tags: tags,
		Summary: "Retry parked work"}, mayConfigure,
		func(ctx context.Context, c caller, in *one) error {
			return a.unpark(ctx, c, "retry", in.ID, a.deps.Parking.RetryParked)
		})
	act(a, huma.Operation{OperationID: "drop-parked", Method: http.MethodDelete, Path: "/v1/parked/{id}", Tags: tags,
		Summary: "Drop parked work and settle its deliveries as cancelled"}, mayConfigure,
		func(ctx context.Context, c caller, in *one) error {
			return a.unpark(ctx, c, "drop", in.ID, a.deps.Parking.DropParked)
		})
}

// parkedOrder makes the ids prk-<day>-<hex> sort by day and number.
func parkedOrder(id string) string {
	i := strings.LastIndexByte(id, '-') + 1
	return id[:i] + strings.Repeat("0", max(0, 16-len(id[i:]))) + id[i:]
}

// parked lists the parked work that the key may see. A key of a service sees the work of the
// events of that service. Only operators see work of several services and work too damaged
// to assign, because one service must not drop work of another.
func (a *API) parked(ctx context.Context, c caller) ([]fanfare.Parked, error) {
	list, err := a.deps.Parking.Parked(ctx)
	if err != nil || c.principal.Service == "" {
		return list, err
	}
	var failed error
	own := slices.DeleteFunc(list, func(p fanfare.Parked) bool {
		ref, ok := fanfare.ParseEventRef(p.Event)
		if !ok || ref.Seq == 0 || p.Shared {
			return true
		}
		_, _, err := a.event(ctx, c, p.Event)
		if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			failed = err
		}
		return err != nil
	})
	return own, failed
}

// unpark retries or drops parked work that the key can see.
func (a *API) unpark(ctx context.Context, c caller, action, id string, do func(context.Context, string) error) error {
	if c.principal.Service != "" {
		own, err := a.parked(ctx, c)
		if err == nil && !slices.ContainsFunc(own, func(p fanfare.Parked) bool { return p.ID == id }) {
			err = problem.NotFound("parked work", id)
		}
		if err != nil {
			return err
		}
	}
	if err := do(ctx, id); err != nil {
		return err
	}
	a.note(ctx, audit.Operation{Service: c.service, Action: action, Kind: "parked", Name: id}, nil)
	return nil
}
