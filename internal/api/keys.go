package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/api/wire"
)

func (a *API) keyRoutes() {
	op := huma.Operation{OperationID: "create-key", Method: http.MethodPost, Path: "/v1/keys", Tags: []string{"configuration"},
		Summary: "Make a key of one service", Description: "The key is shown this once: only a hash of it is kept.",
		RequestBody: body[wire.KeyRequest](a, "What the key is for", "application/json")}
	replies[wire.Key](a, &op, http.StatusCreated, "The key", "application/json")
	a.handle(op, adminKey, func(x *exchange, r *http.Request, _ caller) error {
		var in wire.KeyRequest
		if err := readJSON(x, r, &in); err != nil {
			return err
		}
		if in.Service == "" {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/service", Message: "must name the service that the key is for"}
		}
		secret, err := a.parts.Keys.CreateKey(r.Context(), in.Service, in.Name)
		if err != nil {
			return err
		}
		x.Header().Set("Cache-Control", "no-store")
		return writeJSON(x, http.StatusCreated, "application/json", wire.Key{Key: secret})
	})
}
