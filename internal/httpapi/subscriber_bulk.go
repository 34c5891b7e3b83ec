package httpapi

import (
	"context"
	"net/http"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/ndjson"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
)

// subscriberChunkLines is the number of subscribers that are stored with one call.
const subscriberChunkLines = 1000

// importSubscribers stores the subscriber on each line of the body.
func (a *API) importSubscribers(x *responseWriter, r *http.Request, service string, quiet bool) error {
	sum := putSum{Errors: []wire.LineError{}}
	defer a.noteImport(r, service, "subscribers", &sum)
	return run(a, x, r, ndjson.Endpoint[people.ImportedSubscriber]{
		Decode:       func(line []byte, l *people.ImportedSubscriber) error { return httpio.DecodeStrictly(line, l) },
		MaxLineBytes: importLineBytes, MaxLines: subscriberChunkLines, Status: http.StatusOK, Quiet: quiet,
		Store: func(ctx context.Context, lines []people.ImportedSubscriber) (<-chan error, ndjson.ResultFunc) {
			results := make([]people.PutResult, len(lines))
			done := make(chan error, 1)
			done <- a.deps.Subscribers.PutSubscribers(audit.WithoutActor(ctx), service, lines, results)
			return done, func(dst []byte, i int) ([]byte, error) {
				return sum.add(dst, &results[i], quiet)
			}
		},
		Rejected: sum.refused,
		Summary:  func() any { return wire.PutSummary(sum) },
	})
}

// exportPage is the number of subscribers that an export keeps in memory.
const exportPage = 1000

// exportSubscribers streams all subscribers as lines for an import. It omits ids assigned
// by the server: they are row ids, which an import assigns anew.
func (a *API) exportSubscribers(ctx context.Context, x *responseWriter, service string) error {
	out := newLineStream(x)
	for after, more := fanfare.RowID(0), true; more; {
		page, next, err := a.deps.Subscribers.SubscriberPage(ctx, service, after, exportPage)
		if err != nil {
			return err
		}
		for i := range page {
			s := &page[i]
			line := people.ImportedSubscriber{ID: s.ID, SubscriberPut: people.SubscriberPut{Addresses: s.Addresses, Locale: s.Locale, TimeZone: s.TimeZone, Attributes: s.Attributes}}
			if _, ours := people.ParseSubscriberID(s.ID); ours {
				line.ID = ""
			}
			if err := out.write(line); err != nil {
				return err
			}
		}
		after, more = next, next != 0
	}
	return out.flush()
}
