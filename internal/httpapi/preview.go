package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Previews renders and checks templates. It stores and sends nothing.
type Previews interface {
	Preview(ctx context.Context, service, template string, in wire.PreviewRequest) (wire.Preview, error)
	// HTML renders the HTML of a template, without scripts and with its images as data. It fails with NotFound if the template has none.
	HTML(ctx context.Context, service, template string, in wire.PreviewRequest) ([]byte, error)
	// Lint reports problems that readers may have with a template.
	Lint(ctx context.Context, service, template string, in wire.LintRequest) (wire.Lint, error)
}

func (a *API) previewRoutes() {
	a.previewPageRoute()
	op := huma.Operation{OperationID: "preview-template", Method: http.MethodPost, Path: "/v1/templates/{template}/preview", Tags: []string{"templates"},
		Summary:     "Render a stored template or a draft",
		Description: "Returns the subject, text, HTML and the complete message for an event and a subscriber, which you specify or the server generates. Errors give the part of the template and the line. Nothing is stored or sent.",
		Parameters:  []*huma.Param{param("template", "name of the template; any name if the request contains a template"), service()},
		RequestBody: body[wire.PreviewRequest](a, "The input; {} uses sample data", "application/json")}
	replies[wire.Preview](a, &op, http.StatusOK, "The rendered template", "application/json")
	a.handle(op, mayRead, func(x *responseWriter, r *http.Request, c caller) error {
		s, err := a.oneService(c)
		if err != nil {
			return err
		}
		var in wire.PreviewRequest
		if err := httpio.ReadTemplateJSON(x, r, &in); err != nil {
			return err
		}
		name := r.PathValue("template")
		p, err := a.deps.Previews.Preview(r.Context(), s, name, in)
		if err != nil {
			if in.Template != nil {
				err = inDraft(name, err)
			}
			return err
		}
		return httpio.WriteJSON(x, http.StatusOK, "application/json", p)
	})
}

// maxPreviewData is the maximum size of data in a URL.
const maxPreviewData = 16 << 10

// previewPageRoute serves the HTML of a preview for a frame, because a page must not contain it.
func (a *API) previewPageRoute() {
	op := huma.Operation{OperationID: "show-template-html", Method: http.MethodGet, Path: "/v1/templates/{template}/html", Tags: []string{"templates"},
		Summary:     "Show the HTML of a template with sample data, or with an event and a subscription",
		Description: "Images in the message are shown, and images from other servers are not. A content security policy prevents scripts, requests and forms. Without event and data, the server generates data.",
		Parameters: []*huma.Param{param("template", "name of the template"), query("version", "number of the version; default: the published version"), flag("draft", "use the draft"),
			query("topic", "topic, for its schema and rules; default: the first topic that uses the template"), query("locale", "language tag; default: that of the template"), query("device", "device"),
			query("event", "use the data of this event: evt-..., or the id given by the sender"),
			query("subscription", "use this subscription: its subscriber, params and data"), query("data", "event data, as JSON of at most 16 KiB"), service()}}
	replies[string](a, &op, http.StatusOK, "The HTML", "text/html")
	a.handle(op, mayRead, func(x *responseWriter, r *http.Request, c caller) error {
		s, err := a.oneService(c)
		if err != nil {
			return err
		}
		in, err := previewIn(r)
		if err != nil {
			return err
		}
		text, err := a.deps.Previews.HTML(r.Context(), s, r.PathValue("template"), in)
		if err == nil {
			x.capturedHeaders("text/html; charset=utf-8")
			httpio.WriteAll(x, http.StatusOK, text)
		}
		return err
	})
}

// previewIn reads a preview request from the query.
func previewIn(r *http.Request) (in wire.PreviewRequest, err error) {
	q := r.URL.Query()
	in = wire.PreviewRequest{Topic: q.Get("topic"), Locale: q.Get("locale"), Device: q.Get("device"), Event: q.Get("event"), Subscription: q.Get("subscription")}
	if in.Draft, err = httpio.Boolean(r, "draft"); err != nil {
		return in, err
	}
	if text := q.Get("version"); text != "" {
		if in.Version, err = strconv.Atoi(text); err != nil || in.Version < 1 {
			return in, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter version must be a number from 1", Hint: "list the versions: GET /v1/templates/{template}/versions"}
		}
	}
	if data := q.Get("data"); data != "" {
		switch {
		case len(data) > maxPreviewData:
			return in, &fanfare.Error{Code: fanfare.TooLarge, Message: "query parameter data is larger than 16 KiB", Hint: "use an event, or POST /v1/templates/{template}/preview"}
		case !json.Valid([]byte(data)):
			return in, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter data is not valid JSON", Hint: "send the data of an event as JSON"}
		}
		in.Data = json.RawMessage(data)
	}
	return in, nil
}

// inDraft converts pointers into a document to pointers into the template of the request.
func inDraft(name string, err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	at := *e
	if part, ok := strings.CutPrefix(e.Pointer, "/templates/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)); ok {
		at.Pointer = "/template" + part
	}
	at.Details = nil
	for _, d := range e.Details {
		if one, ok := errors.AsType[*fanfare.Error](inDraft(name, d)); ok {
			at.Details = append(at.Details, one)
		}
	}
	return &at
}
