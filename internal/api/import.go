package api

import (
	"context"
	"net/http"

	"fanfare.dev/fanfare/internal/api/wire"
	"fanfare.dev/fanfare/internal/registry"
)

// Limits of a bulk import.
const (
	importLineBytes  = 64 << 10
	importChunkLines = 5000 // put with one call
)

// importSubscriptions puts the subscription on each line of the body.
func (a *API) importSubscriptions(x *exchange, r *http.Request, service string, quiet bool) error {
	var results []registry.PutResult
	sum := wire.PutSummary{Errors: []wire.LineError{}}
	defer func() {
		a.note(context.WithoutCancel(r.Context()), registry.Deed{Service: service, Action: "import", Kind: "subscriptions"},
			&registry.Detail{Counts: map[string]int64{"created": sum.Created, "updated": sum.Updated, "failed": sum.Failed}})
	}()
	return run(a, x, r, lineWork[registry.Put]{
		decode: registry.DecodePut, maxLineBytes: importLineBytes, maxLines: importChunkLines, status: http.StatusOK, quiet: quiet,
		keep: func(ctx context.Context, puts []registry.Put) error {
			if cap(results) < len(puts) {
				results = make([]registry.PutResult, len(puts))
			}
			results = results[:len(puts)]
			clear(results)
			return a.parts.Subscriptions.PutSubscriptions(registry.Unnoted(ctx), service, puts, results)
		},
		outcome: func(dst []byte, i int) ([]byte, error) {
			result := &results[i]
			switch {
			case result.Err != nil:
				return dst, result.Err
			case result.Created:
				sum.Created++
			default:
				sum.Updated++
			}
			if quiet {
				return dst, nil
			}
			return appendPut(dst, result), nil
		},
		refused: func(e wire.LineError) {
			sum.Failed++
			if len(sum.Errors) < wire.MaxErrors {
				sum.Errors = append(sum.Errors, e)
			}
		},
		summary: func() any { return sum },
	})
}
