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
	steps := a.parts.Subscriptions.Import(service)
	var spare [][]registry.PutResult // of steps that are over
	sum := wire.PutSummary{Errors: []wire.LineError{}}
	defer func() {
		a.note(context.WithoutCancel(r.Context()), registry.Deed{Service: service, Action: "import", Kind: "subscriptions"},
			&registry.Detail{Counts: map[string]int64{"created": sum.Created, "updated": sum.Updated, "failed": sum.Failed}})
	}()
	return run(a, x, r, lineWork[registry.Put]{
		decode: registry.DecodePut, maxLineBytes: importLineBytes, maxLines: importChunkLines, ahead: 1, status: http.StatusOK, quiet: quiet,
		keep: func(ctx context.Context, puts []registry.Put) (<-chan error, outcome) {
			var results []registry.PutResult
			if last := len(spare) - 1; last >= 0 {
				results, spare = spare[last], spare[:last]
			}
			if cap(results) < len(puts) {
				results = make([]registry.PutResult, len(puts))
			}
			results = results[:len(puts)]
			clear(results)
			return steps.Begin(registry.Unnoted(ctx), puts, results), func(dst []byte, i int) ([]byte, error) {
				result := &results[i]
				if i == len(results)-1 {
					defer func() { spare = append(spare, results) }()
				}
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
			}
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
