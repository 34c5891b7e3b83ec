package httpapi

import (
	"context"
	"net/http"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/ndjson"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
)

// Limits of a bulk import.
const (
	importLineBytes  = 64 << 10
	importChunkLines = 5000 // stored with one call
)

// importSubscriptions stores the subscription on each line of the body.
func (a *API) importSubscriptions(x *responseWriter, r *http.Request, service string, quiet bool) error {
	steps := a.deps.Subscriptions.Import(service)
	var spare [][]people.PutResult // of completed steps
	sum := putSum{Errors: []wire.LineError{}}
	defer a.noteImport(r, service, "subscriptions", &sum)
	return run(a, x, r, ndjson.Endpoint[people.SubscriptionPut]{
		Decode: people.DecodeSubscription, MaxLineBytes: importLineBytes, MaxLines: importChunkLines, ChunksAhead: 2, Status: http.StatusOK, Quiet: quiet,
		Store: func(ctx context.Context, puts []people.SubscriptionPut) (<-chan error, ndjson.ResultFunc) {
			var results []people.PutResult
			if last := len(spare) - 1; last >= 0 {
				results, spare = spare[last], spare[:last]
			}
			if cap(results) < len(puts) {
				results = make([]people.PutResult, len(puts))
			}
			results = results[:len(puts)]
			clear(results)
			return steps.Begin(audit.WithoutActor(ctx), puts, results), func(dst []byte, i int) ([]byte, error) {
				result := &results[i]
				if i == len(results)-1 {
					defer func() { spare = append(spare, results) }()
				}
				return sum.add(dst, result, quiet)
			}
		},
		Rejected: sum.refused,
		Summary:  func() any { return wire.PutSummary(sum) },
	})
}

// putSum counts the results of an import.
type putSum wire.PutSummary

// add counts a line that the registry stored or rejected, and appends its
// response.
func (s *putSum) add(dst []byte, result *people.PutResult, quiet bool) ([]byte, error) {
	switch {
	case result.Err != nil:
		return dst, result.Err
	case result.Created:
		s.Created++
	default:
		s.Updated++
	}
	if !result.Cost.Indexed() {
		s.Unindexed++
		s.NsPerEvent += result.Added
	}
	if quiet {
		return dst, nil
	}
	return appendPut(dst, result, false), nil
}

func (s *putSum) refused(e wire.LineError) {
	s.Failed++
	if len(s.Errors) < wire.MaxErrors {
		s.Errors = append(s.Errors, e)
	}
}

// noteImport adds one entry for a whole import to the audit log, unless it had no lines.
func (a *API) noteImport(r *http.Request, service, kind string, s *putSum) {
	if s.Created+s.Updated+s.Failed == 0 {
		return
	}
	a.note(context.WithoutCancel(r.Context()), audit.Operation{Service: service, Action: "import", Kind: kind},
		&audit.Detail{Counts: map[string]int64{"created": s.Created, "updated": s.Updated, "failed": s.Failed}})
}
