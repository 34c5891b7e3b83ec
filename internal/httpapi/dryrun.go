package httpapi

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Limits of the sample of a dry run.
const (
	defaultSample = 10
	maxSample     = 1000
)

// dryRunRoutes adds the operations that report what would be sent and send nothing. They
// are separate operations, not flags of those that send, so that each has one response type.
func (a *API) dryRunRoutes() {
	match := huma.Operation{OperationID: "match-event", Method: http.MethodPost, Path: "/v1/topics/{topic}/match", Tags: []string{"events"},
		Summary: "Show how many subscriptions an event would match, with a sample, without publishing it",
		Description: "The dry run of publish: the body is the event's data, or a CloudEvent in the structured or binary mode, and data, times and audience are checked in the same way. Nothing is stored or sent. " +
			"A key that can publish but has no access to subscribers gets the counts and an empty sample.",
		Parameters: append(append([]*huma.Param{param("topic", "name of the topic")}, ofEvents()...),
			query("sample", "number of subscriptions in the sample, 0 to 1000; default: 10")),
		RequestBody: body[any](a, "An event", "application/json", httpio.CloudEvent)}
	replies[wire.DryRun](a, &match, http.StatusOK, "The result of the dry run", "application/json")
	a.handle(match, mayTry, a.matchEvent)

	try := huma.Operation{OperationID: "try-message", Method: http.MethodPost, Path: "/v1/dry-run/messages", Tags: []string{"messages"},
		Summary:     "Count the messages of a direct message by channel, and list rejected recipients, without sending",
		Description: "The dry run of send-message: the body is the same and is checked in the same way, and every message is rendered. Nothing is stored or sent.",
		Parameters:  []*huma.Param{service()},
		RequestBody: body[wire.MessageRequest](a, "The message", "application/json")}
	replies[wire.MessageRun](a, &try, http.StatusOK, "The result of the dry run", "application/json")
	a.handle(try, mayPublish, a.tryMessage)
}

func (a *API) matchEvent(x *responseWriter, r *http.Request, c caller) error {
	p, err := a.posting(r, c, r.PathValue("topic"))
	if err != nil {
		return err
	}
	sample, err := sampleFor(r, c)
	if err != nil {
		return err
	}
	text, err := httpio.ReadBody(x, r)
	if err != nil {
		return err
	}
	event, err := oneEvent(r, p, text, "application/json", httpio.CloudEvent)
	if err != nil {
		return err
	}
	posted, err := p.posted(event)
	if err == nil {
		err = a.check(&posted)
	}
	if err != nil {
		return err
	}
	run, err := a.deps.Conditions.DryRun(r.Context(), &posted, sample)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", run)
}

// sampleFor returns the size of the sample for the caller: 0 without access to
// subscribers.
func sampleFor(r *http.Request, c caller) (int, error) {
	sample := defaultSample
	if text := r.URL.Query().Get("sample"); text != "" {
		var err error
		if sample, err = strconv.Atoi(text); err != nil || sample < 0 || sample > maxSample {
			return 0, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter sample must be a number from 0 to " + strconv.Itoa(maxSample) + ", not " + strconv.Quote(text)}
		}
	}
	if !c.principal.Scopes.Has(scopesOf[mayLookUp]) {
		return 0, nil
	}
	return sample, nil
}

func (a *API) tryMessage(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	request, _, err := readMessage(x, r)
	if err != nil {
		return err
	}
	run, err := a.deps.Messages.Try(r.Context(), service, request)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", run)
}
