package httpapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/ndjson"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/suppression"
)

// suppressionChunkLines is the number of lines that are stored with one call.
const suppressionChunkLines = 2000

type suppressionsBy struct {
	Page
	Reason      string `query:"reason" enum:"soft_bounces,imported,unsubscribed,hard_bounce,manual,complaint,erased" doc:"only suppressions for this reason"`
	AllServices bool   `query:"all_services" doc:"suppressions for all services; requires a key with the scope admin for all services"`
	Accept      string `header:"Accept" doc:"application/x-ndjson: all suppressions as a stream; text/csv: the same as CSV"`
}

// SuppressionSummary is the short response to an import.
type SuppressionSummary struct {
	Added  int64            `json:"added" doc:"number of entries that are new, or have a stronger reason or a later end than before"`
	Kept   int64            `json:"kept" doc:"number of entries that changed nothing"`
	Failed int64            `json:"failed"`
	Errors []wire.LineError `json:"errors" doc:"errors of the first 100 rejected lines"`
}

func (a *API) suppressionListRoutes() {
	const path = "/v1/suppression-list"
	tags := []string{"subscribers"}
	list := huma.Operation{OperationID: "list-suppressions", Method: http.MethodGet, Path: path, Tags: tags,
		Summary: "List the suppressed addresses of a service, the latest first, or stream all of them",
		Description: "Entries of erased subscribers have a hash instead of an address. " +
			"With Accept: application/x-ndjson, all entries are streamed, one per line in the format of an import. The suppressions for all services are a separate list."}
	replies[SuppressionList](a, &list, http.StatusOK, "A page, or a stream of all suppressions", "application/json")
	list.Responses["200"].Content[httpio.NDJSON] = &huma.MediaType{Schema: schemaIn[SuppressionRequest](a, httpio.NDJSON)}
	l, _ := listOf(&list, reflect.TypeFor[SuppressionList]())
	readList(a, list, mayLookUp, l, a.suppressionPage, a.suppressionLines)

	fill := huma.Operation{OperationID: "import-suppressions", Method: http.MethodPost, Path: path, Tags: tags,
		Summary:     "Add the address on each line to the suppression list",
		Description: "NDJSON is streamed: each line is stored independently and gets a response line, in order; an invalid line does not affect the others. Read the responses while you send, or request a summary with quiet=true.",
		Parameters: []*huma.Param{service(), flag("quiet", "return only a summary"),
			flag("all_services", "suppress the addresses for all services; requires a key with the scope admin for all services")},
		RequestBody: body[SuppressionRequest](a, "An address on each line", httpio.NDJSON)}
	replies[SuppressionSummary](a, &fill, http.StatusOK, "A result or an error on each line, or with quiet=true a summary", "application/json")
	fill.Responses["200"].Content[httpio.NDJSON] = &huma.MediaType{Schema: schemaIn[SuppressionAdded](a, httpio.NDJSON)}
	a.handle(fill, maySubscribe, a.importSuppressions)
}

func (a *API) suppressionPage(ctx context.Context, c caller, in *suppressionsBy) (list SuppressionList, err error) {
	s, err := a.suppressionScope(c, in.AllServices)
	if err != nil {
		return list, err
	}
	l := listingOf("suppressions", s, in.Reason)
	after, err := suppressionAfter(l, in.Cursor)
	if err != nil {
		return list, err
	}
	page, next, err := a.deps.Suppressions.Suppressions(ctx, suppression.Filter{Service: s, Reason: in.Reason}, after, in.Limit)
	list.Suppressions = orEmpty(page)
	if next != nil {
		list.Next = l.cursor(fmt.Sprintf("%x.%x.%x", next.At, next.Kind, next.Hash))
	}
	return list, err
}

// suppressionLines returns the function that writes all suppressions in the format of an import.
func (a *API) suppressionLines(_ context.Context, c caller, in *suppressionsBy) (func(context.Context, *responseWriter) error, error) {
	s, err := a.suppressionScope(c, in.AllServices)
	if err != nil {
		return nil, err
	}
	if in.Cursor != "" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "an export contains the whole list and does not support cursor", Hint: "omit cursor, or request application/json to get pages"}
	}
	return func(ctx context.Context, x *responseWriter) error {
		return a.exportSuppressions(ctx, x, suppression.Filter{Service: s, Reason: in.Reason})
	}, nil
}

func suppressionAfter(l listing, cursor string) (*suppression.Cursor, error) {
	key, err := l.key(cursor)
	if err != nil || key == "" {
		return nil, err
	}
	var after suppression.Cursor
	var hash string
	_, err = fmt.Sscanf(key, "%x.%x.%64s", &after.At, &after.Kind, &hash)
	if err == nil {
		_, err = hex.Decode(after.Hash[:], []byte(hash))
	}
	if err != nil {
		_, err = l.key("damaged")
	}
	return &after, err
}

// exportSuppressions streams the list.
func (a *API) exportSuppressions(ctx context.Context, x *responseWriter, f suppression.Filter) error {
	out := newLineStream(x)
	if err := a.deps.Suppressions.EachSuppression(ctx, f, func(s *suppression.Suppression) error { return out.write(s) }); err != nil {
		return err
	}
	return out.flush()
}

// importSuppressions adds the address on each line of the body to the list.
func (a *API) importSuppressions(x *responseWriter, r *http.Request, c caller) error {
	quiet, err := httpio.WantsSummary(r)
	if err != nil {
		return err
	}
	all, err := httpio.Boolean(r, "all_services")
	if err != nil {
		return err
	}
	s, err := a.suppressionScope(c, all)
	if err != nil {
		return err
	}
	if mt := httpio.MediaType(r.Header); !httpio.IsNDJSON(mt) {
		return httpio.UnknownType(mt, httpio.NDJSON)
	}
	sum := SuppressionSummary{Errors: []wire.LineError{}}
	defer func() {
		if sum.Added+sum.Kept+sum.Failed == 0 {
			return
		}
		a.note(context.WithoutCancel(r.Context()), audit.Operation{Service: s, Action: "import", Kind: "suppressions"},
			&audit.Detail{Counts: map[string]int64{"added": sum.Added, "kept": sum.Kept, "failed": sum.Failed}})
	}()
	return run(a, x, r, ndjson.Endpoint[suppression.Record]{
		Decode:       func(line []byte, to *suppression.Record) error { return a.decodeSuppression(line, s, all, to) },
		MaxLineBytes: importLineBytes, MaxLines: suppressionChunkLines, Status: http.StatusOK, Quiet: quiet,
		Store: func(ctx context.Context, records []suppression.Record) (<-chan error, ndjson.ResultFunc) {
			added, err := a.deps.Suppressions.SuppressRecords(audit.WithoutActor(ctx), records)
			done := make(chan error, 1)
			done <- err
			return done, func(dst []byte, i int) ([]byte, error) { return sum.add(dst, added[i], quiet), nil }
		},
		Rejected: func(e wire.LineError) {
			sum.Failed++
			if len(sum.Errors) < wire.MaxErrors {
				sum.Errors = append(sum.Errors, e)
			}
		},
		Summary: func() any { return sum },
	})
}

// add counts a stored line and appends its response.
func (s *SuppressionSummary) add(dst []byte, added, quiet bool) []byte {
	answer := `{"added":false}`
	if added {
		answer = `{"added":true}`
		s.Added++
	} else {
		s.Kept++
	}
	if quiet {
		return dst
	}
	return append(dst, answer...)
}

func (a *API) decodeSuppression(line []byte, service string, all bool, to *suppression.Record) (err error) {
	var in SuppressionRequest
	if err := httpio.DecodeStrictly(line, &in); err != nil {
		return err
	}
	if in.AllServices && !all {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/all_services", Message: "the entry is for all services, but the list belongs to one service",
			Hint: "send the list with ?all_services=true, or omit all_services"}
	}
	*to, err = a.deps.Suppressions.CheckSuppression(in.ask(service, suppression.ReasonImported))
	return err
}
