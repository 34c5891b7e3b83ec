package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
)

func (a *API) subscriptionRoutes() {
	a.pauseRoutes()
	tags := []string{"subscriptions"}
	post := huma.Operation{OperationID: "put-subscriptions", Method: http.MethodPost, Path: "/v1/subscriptions", Tags: tags,
		Summary: "Create or replace one subscription or, with NDJSON, any number of subscriptions",
		Description: "NDJSON is streamed: each line is stored independently and gets a response line, in order; an invalid line does not affect the others. " +
			"Read the responses while you send, or request a summary with quiet=true or Prefer: return=minimal. If a body is cut off, its complete lines are stored.",
		Parameters:  []*huma.Param{service(), flag("quiet", "NDJSON: return only a summary")},
		RequestBody: body[wire.SubscriptionRequest](a, "A subscription, or one on each line", "application/json", httpio.NDJSON)}
	replies[wire.Subscribed](a, &post, http.StatusCreated, "Created", "application/json")
	replies[wire.Subscribed](a, &post, http.StatusOK, "Replaced, or unchanged; for NDJSON: a result or an error on each line", "application/json", httpio.NDJSON)
	orSummary[wire.PutSummary](a, &post, http.StatusOK)
	a.handle(post, maySubscribe, a.postSubscriptions)

	put := huma.Operation{OperationID: "put-subscription", Method: http.MethodPut, Path: "/v1/subscriptions/{id}", Tags: tags,
		Summary:     "Create or replace the subscription with this id",
		Parameters:  []*huma.Param{param("id", "your own id for the subscription"), service(), ifMatch()},
		RequestBody: body[wire.SubscriptionRequest](a, "The subscription", "application/json")}
	replies[wire.Subscribed](a, &put, http.StatusCreated, "Created", "application/json")
	replies[wire.Subscribed](a, &put, http.StatusOK, "Replaced, or unchanged", "application/json")
	a.handle(put, maySubscribe, a.putSubscription)

	type One struct {
		Named
		ID string `path:"id" doc:"id of the subscription"`
	}
	read(a, huma.Operation{OperationID: "get-subscription", Method: http.MethodGet, Path: "/v1/subscriptions/{id}", Tags: tags,
		Summary: "Get a subscription, including an ended one"}, mayLookUp,
		func(ctx context.Context, c caller, in *One) (people.Subscription, error) {
			s, err := a.oneService(c)
			if err != nil {
				return people.Subscription{}, err
			}
			found, err := a.deps.Subscriptions.Subscription(ctx, s, in.ID)
			if err == nil {
				err = setTag(ctx.Value(exchangeKey{}).(*responseWriter), found)
			}
			return found, err
		})

	type end struct {
		One
		Reason  string `query:"reason" maxLength:"200" doc:"reason, which is stored with the subscription"`
		IfMatch string `header:"If-Match" doc:"end it only if it still has this ETag; otherwise 412"`
	}
	act(a, huma.Operation{OperationID: "end-subscription", Method: http.MethodDelete, Path: "/v1/subscriptions/{id}", Tags: tags,
		Summary: "End a subscription", Description: "The response is sent when no further message for the subscription can be sent. It waits for messages that are being sent."}, maySubscribe,
		func(ctx context.Context, c caller, in *end) error {
			s, err := a.oneService(c)
			if err != nil {
				return err
			}
			if in.Reason == "" {
				in.Reason = "ended over the API"
			}
			x := ctx.Value(exchangeKey{}).(*responseWriter)
			httpio.AllowLongResponse(x)
			return a.deps.Subscriptions.EndSubscriptionIf(ctx, s, in.ID, in.Reason, httpio.Preconditions[people.Subscription](x.request))
		})
}

func (a *API) postSubscriptions(x *responseWriter, r *http.Request, c caller) error {
	s, err := a.oneService(c)
	if err != nil {
		return err
	}
	switch mt := httpio.MediaType(r.Header); {
	case httpio.IsNDJSON(mt):
		quiet, err := httpio.WantsSummary(r)
		if err != nil {
			return err
		}
		return a.importSubscriptions(x, r, s, quiet)
	case mt == "application/json" || mt == "":
		return a.keepSubscription(x, r, s, "")
	default:
		return httpio.UnknownType(mt, "application/json", httpio.NDJSON)
	}
}

func (a *API) putSubscription(x *responseWriter, r *http.Request, c caller) error {
	s, err := a.oneService(c)
	if err != nil {
		return err
	}
	return a.keepSubscription(x, r, s, r.PathValue("id"))
}

// keepSubscription stores the subscription in the body; id is the id in the
// path, or "".
func (a *API) keepSubscription(x *responseWriter, r *http.Request, service, id string) error {
	text, err := httpio.ReadBody(x, r)
	if err != nil {
		return err
	}
	puts := make([]people.SubscriptionPut, 1)
	if err := people.DecodeSubscription(text, &puts[0]); err != nil {
		return err
	}
	if id != "" {
		if puts[0].ID != "" && puts[0].ID != id {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/id", Message: "id in the body differs from the id in the path", Hint: "omit id from the body"}
		}
		puts[0].ID = id
		puts[0].Check = httpio.Preconditions[people.Subscription](r)
	}
	results := make([]people.PutResult, 1)
	if err := a.deps.Subscriptions.PutSubscriptions(r.Context(), service, puts, results); err != nil {
		return err
	}
	if results[0].Err != nil {
		return results[0].Err
	}
	status := http.StatusOK
	if results[0].Created {
		status = http.StatusCreated
		x.Header().Set("Location", "/v1/subscriptions/"+url.PathEscape(results[0].ID))
	}
	x.Header().Set("Content-Type", "application/json")
	httpio.WriteAll(x, status, append(appendPut(nil, &results[0], true), '\n'))
	return nil
}

// appendPut appends a wire.Subscribed. It includes the cost of the condition if the client
// asked for it, or if no index covers the condition.
func appendPut(dst []byte, r *people.PutResult, cost bool) []byte {
	dst = append(dst, `{"id":`...)
	dst = httpio.AppendString(dst, r.ID)
	dst = append(dst, `,"created":`...)
	dst = strconv.AppendBool(dst, r.Created)
	switch {
	case !r.Cost.Indexed():
		dst = append(dst, `,"matching":{"indexed":false,"ns_per_event":`...)
		dst = strconv.AppendInt(dst, r.Cost.Nanos, 10)
		dst = append(dst, `,"reason":`...)
		dst = append(httpio.AppendString(dst, r.Cost.Why), '}')
	case cost:
		dst = append(dst, `,"matching":{"indexed":true}`...)
	}
	return append(dst, '}')
}
