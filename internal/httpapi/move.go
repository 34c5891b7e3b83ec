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

// Moves moves all data to another database while the server runs.
type Moves interface {
	// Start begins a move, which continues after Start has returned, and returns its name
	// in the audit log.
	Start(ctx context.Context, to string) (wire.Move, error)
	// Move returns the running move or the last one, or false if there was none.
	Move() (wire.Move, bool)
	// Stop ends the running move, if any, and returns when it has ended.
	Stop()
}

func (a *API) moveRoutes() {
	tags := []string{"operations"}
	op := huma.Operation{OperationID: "start-move", Method: http.MethodPost, Path: "/v1/move", Tags: tags,
		Summary: "Move all data to another database while the server runs",
		Description: "The new database must be empty, or contain an unfinished move from this server. The server copies all data, replays later writes, " +
			"compares the two databases and then holds writes briefly during the switch. Set db to the new database before the next start: the server does not start with the old one.",
		RequestBody: body[wire.MoveRequest](a, "The target database", "application/json")}
	replies[wire.Move](a, &op, http.StatusAccepted, "The move has started", "application/json")
	a.handle(op, operator, a.startMove)

	read(a, huma.Operation{OperationID: "get-move", Method: http.MethodGet, Path: "/v1/move", Tags: tags,
		Summary: "Show the progress of the move, or the result of the last one", Description: "404 if no move has been started since the server started."},
		operator, func(context.Context, caller, *struct{}) (wire.Move, error) {
			m, ok := a.deps.Moves.Move()
			if !ok {
				return m, &fanfare.Error{Code: fanfare.NotFound, Message: "no move has been started since the server started"}
			}
			return m, nil
		})
	act(a, huma.Operation{OperationID: "stop-move", Method: http.MethodDelete, Path: "/v1/move", Tags: tags,
		Summary: "Stop the running move", Description: "The old database remains in use. The request also succeeds if no move is running."},
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
	httpio.AllowLongResponse(x) // the other database may be slow
	m, err := a.deps.Moves.Start(r.Context(), in.To)
	if err != nil {
		return err
	}
	a.note(r.Context(), audit.Operation{Action: "start", Kind: "move", Name: m.To}, nil)
	return httpio.WriteJSON(x, http.StatusAccepted, "application/json", m)
}
