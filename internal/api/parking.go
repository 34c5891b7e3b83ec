package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/api/wire"
)

func (a *API) parkingRoutes() {
	tags := []string{"operations"}
	type one struct {
		ID string `path:"id" doc:"of the parked work"`
	}
	read(a, huma.Operation{OperationID: "list-parked", Method: http.MethodGet, Path: "/v1/parked", Tags: tags,
		Summary: "Work that failed too often and waits for an operator"}, adminKey,
		func(ctx context.Context, _ caller, _ *struct{}) (wire.ParkedList, error) {
			list, err := a.parts.Parking.Parked(ctx)
			return wire.ParkedList{Parked: orEmpty(list)}, err
		})
	act(a, huma.Operation{OperationID: "retry-parked", Method: http.MethodPost, Path: "/v1/parked/{id}/retry", Tags: tags,
		Summary: "Try parked work again"}, adminKey,
		func(ctx context.Context, _ caller, in *one) error { return a.parts.Parking.RetryParked(ctx, in.ID) })
	act(a, huma.Operation{OperationID: "drop-parked", Method: http.MethodDelete, Path: "/v1/parked/{id}", Tags: tags,
		Summary: "Give parked work up; its deliveries are settled as cancelled"}, adminKey,
		func(ctx context.Context, _ caller, in *one) error { return a.parts.Parking.DropParked(ctx, in.ID) })
}
