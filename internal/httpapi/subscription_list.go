package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
)

// SubscriptionLists reads many subscriptions in parts.
type SubscriptionLists interface {
	// SubscriptionPage may return fewer than limit subscriptions even if next shows that more follow.
	SubscriptionPage(ctx context.Context, service string, f people.SubscriptionFilter, after fanfare.RowID, limit int) (page []people.Subscription, next fanfare.RowID, err error)
	// ExportSubscriptions visits the subscriptions that have not ended, as puts that recreate them.
	ExportSubscriptions(ctx context.Context, service string, f people.SubscriptionFilter, visit func(p *people.SubscriptionPut) error) error
}

// SubscriptionList is a page of subscriptions.
type SubscriptionList struct {
	Subscriptions []people.Subscription `json:"subscriptions" doc:"subscriptions, in storage order"`
	Next          string                `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

type subscriptionsBy struct {
	Page
	Topic      string `query:"topic" doc:"only subscriptions to this topic"`
	Channel    string `query:"channel" doc:"only subscriptions over this channel"`
	Subscriber string `query:"subscriber" doc:"only subscriptions of this subscriber (id), or to this address"`
	State      string `query:"state" enum:"active,paused,ended" doc:"only subscriptions in this state"`
	Accept     string `header:"Accept" doc:"application/x-ndjson: all active and paused subscriptions as a stream; text/csv: all subscriptions"`
}

func (in *subscriptionsBy) filter() people.SubscriptionFilter {
	return people.SubscriptionFilter{Topic: in.Topic, Channel: in.Channel, Subscriber: in.Subscriber, State: in.State}
}

func (a *API) subscriptionListRoutes() {
	op := huma.Operation{OperationID: "list-subscriptions", Method: http.MethodGet, Path: "/v1/subscriptions", Tags: []string{"subscriptions"},
		Summary: "List the subscriptions of a service in storage order, or stream all of them",
		Description: "A page can have fewer entries than limit even if more follow; next is then set. With Accept: application/x-ndjson, all active and paused subscriptions " +
			"that match the filters are streamed, one per line in the format of an import, so that they can be imported into an empty service. Ids assigned by the server (sub-, per-) are omitted."}
	replies[SubscriptionList](a, &op, http.StatusOK, "A page, or a stream of all subscriptions", "application/json")
	op.Responses["200"].Content[httpio.NDJSON] = &huma.MediaType{Schema: schemaOf[wire.SubscriptionRequest](a)}
	l, _ := listOf(&op, reflect.TypeFor[SubscriptionList]())
	readList(a, op, mayLookUp, l, a.subscriptionPage, a.subscriptionLines)
}

func (a *API) subscriptionPage(ctx context.Context, c caller, in *subscriptionsBy) (list SubscriptionList, err error) {
	s, err := a.oneService(c)
	if err != nil {
		return list, err
	}
	l := listingOf("subscriptions", s, in.Topic, in.Channel, in.Subscriber, in.State)
	after, err := placeAfter(l, in.Cursor)
	if err != nil {
		return list, err
	}
	page, next, err := a.deps.SubscriptionLists.SubscriptionPage(ctx, s, in.filter(), after, in.Limit)
	list.Subscriptions = orEmpty(page)
	if next != 0 {
		list.Next = l.cursor(placeKey(next))
	}
	return list, err
}

// subscriptionLines returns the function that writes all subscriptions in the format of an import.
func (a *API) subscriptionLines(_ context.Context, c caller, in *subscriptionsBy) (func(context.Context, *responseWriter) error, error) {
	s, err := a.oneService(c)
	if err != nil {
		return nil, err
	}
	if in.State == "ended" || in.Cursor != "" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "an export contains all active and paused subscriptions and supports neither cursor nor the state ended",
			Hint: "omit cursor and state=ended, or request application/json to get pages"}
	}
	return func(ctx context.Context, x *responseWriter) error {
		return a.exportSubscriptions(ctx, x, s, in.filter())
	}, nil
}

// acceptsLines reports whether the client explicitly accepts NDJSON.
func acceptsLines(accept string) bool {
	for mt := range strings.SplitSeq(accept, ",") {
		mt, _, _ = strings.Cut(mt, ";")
		if httpio.IsNDJSON(strings.ToLower(strings.TrimSpace(mt))) {
			return true
		}
	}
	return false
}

const (
	streamPieceBytes = 64 << 10         // size of one write
	streamPatience   = 60 * time.Second // time for a client to read a piece
)

// A lineStream writes values as NDJSON, a piece at a time.
type lineStream struct {
	x    *responseWriter
	buf  bytes.Buffer
	json *json.Encoder
}

func newLineStream(x *responseWriter) *lineStream {
	s := &lineStream{x: x}
	s.json = json.NewEncoder(&s.buf)
	s.json.SetEscapeHTML(false)
	x.Header().Set("Content-Type", httpio.NDJSON)
	return s
}

func (s *lineStream) write(v any) error {
	if err := s.json.Encode(v); err != nil {
		return err
	}
	if s.buf.Len() < streamPieceBytes {
		return nil
	}
	return s.flush()
}

func (s *lineStream) flush() error {
	http.NewResponseController(s.x).SetWriteDeadline(time.Now().Add(streamPatience))
	_, err := s.x.Write(s.buf.Bytes())
	s.buf.Reset()
	return err
}

func (a *API) exportSubscriptions(ctx context.Context, x *responseWriter, service string, f people.SubscriptionFilter) error {
	out := newLineStream(x)
	err := a.deps.SubscriptionLists.ExportSubscriptions(ctx, service, f, func(p *people.SubscriptionPut) error {
		return out.write(wire.SubscriptionRequest{ID: p.ID, Topic: p.Topic, Channel: p.Channel, To: p.To, Subscriber: p.Subscriber, Filter: p.Filter, Rule: p.Rule,
			Params: p.Params, Data: p.Data, Locale: p.Locale, TimeZone: p.TimeZone, Attributes: p.Attributes, State: p.State, Title: p.Title, Description: p.Description, Cadence: p.Cadence})
	})
	if err != nil {
		return err
	}
	return out.flush()
}
