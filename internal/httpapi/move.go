package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Moves moves all that is kept into another database, while the server works.
type Moves interface {
	// Start begins a move, which goes on when it has returned, and tells what it
	// is called in the audit.
	Start(ctx context.Context, to string) (wire.Move, error)
	// Move returns the running move or the last one; false if there was none.
	Move() (wire.Move, bool)
	// Stop ends the running move, if any, and returns when it has ended.
	Stop()
}

func (a *API) moveRoutes() {
	tags := []string{"operations"}
	op := huma.Operation{OperationID: "start-move", Method: http.MethodPost, Path: "/v1/move", Tags: tags,
		Summary: "Move all data to another database while the server runs",
		Description: "The new database must be empty, or contain an unfinished move from this server. The server copies all data, repeats later writes in the new database, " +
			"both are compared, and then writes wait for a moment while the new one takes over. Set db to it before the next start: the server refuses the old one.",
		RequestBody: body[wire.MoveRequest](a, "Where to", "application/json")}
	replies[wire.Move](a, &op, http.StatusAccepted, "The move has begun", "application/json")
	a.handle(op, operator, a.startMove)

	read(a, huma.Operation{OperationID: "get-move", Method: http.MethodGet, Path: "/v1/move", Tags: tags,
		Summary: "Show the progress of the move, or the result of the last one", Description: "404 if no move has started since the start of the server."},
		operator, func(context.Context, caller, *struct{}) (wire.Move, error) {
			m, ok := a.deps.Moves.Move()
			if !ok {
				return m, &fanfare.Error{Code: fanfare.NotFound, Message: "no move has started since the start of the server"}
			}
			return m, nil
		})
	act(a, huma.Operation{OperationID: "stop-move", Method: http.MethodDelete, Path: "/v1/move", Tags: tags,
		Summary: "End the running move", Description: "The old database remains in use. It succeeds also if no move is running."},
		operator, func(ctx context.Context, _ caller, _ *struct{}) error {
			a.deps.Moves.Stop()
			a.note(ctx, audit.Operation{Action: "stop", Kind: "move"}, nil)
			return nil
		})
}

func (a *API) startMove(x *responseWriter, r *http.Request, _ caller) error {
	var in wire.MoveRequest
	if err := httpio.ReadJSON(x, r, &in); err != nil {
		return err
	}
	httpio.AllowLongResponse(x) // the other database may be slow to answer
	m, err := a.deps.Moves.Start(r.Context(), in.To)
	if err != nil {
		return err
	}
	a.note(r.Context(), audit.Operation{Action: "start", Kind: "move", Name: m.To}, nil)
	return httpio.WriteJSON(x, http.StatusAccepted, "application/json", m)
}
