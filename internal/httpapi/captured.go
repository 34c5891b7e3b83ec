package httpapi

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Captured reads and removes captured messages of a service, or of all with "".
type Captured interface {
	List(ctx context.Context, service string, q CapturedQuery) (page []wire.CapturedMessage, next string, searched *time.Time, err error)
	Show(ctx context.Context, service, id string) (wire.CapturedContent, error)
	// HTML returns the HTML of a message without scripts.
	HTML(ctx context.Context, service, id string) ([]byte, error)
	// Source opens a message as it was written.
	Source(service, id string) (io.ReadCloser, int64, error)
	// Attachment returns an attachment with a file name that is safe.
	Attachment(ctx context.Context, service, id string, number int) (name string, content []byte, err error)
	Delete(service, id string) error
	Clear(ctx context.Context, service string) (removed int, err error)
}

// A CapturedQuery selects captured messages. The zero value of a filter selects all.
type CapturedQuery struct {
	Channel   string
	Recipient string // address or URL
	Subject   string // text that it contains, in any case
	Before    string // id of the last message of the previous page
	Limit     int
}

// capturedPolicy is the policy of everything that a captured message contains: it runs nothing, loads nothing, and sends nothing.
const capturedPolicy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// capturedOf selects captured messages.
type capturedOf struct {
	Page
	Channel   string `query:"channel" maxLength:"64" doc:"only messages of this channel"`
	Recipient string `query:"recipient" maxLength:"2000" doc:"only messages to this address or, for webhooks, URL"`
	Subject   string `query:"subject" maxLength:"500" doc:"only messages whose subject contains this text, in any case"`
}

func (a *API) capturedRoutes() {
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"captured"}, Summary: summary}
	}
	type one struct {
		Named
		ID string `path:"id" doc:"id of the delivery (dlv-...)"`
	}
	list := op("list-captured", http.MethodGet, "/v1/captured", "List captured messages, the newest first")
	list.Description = "Messages that the server wrote to the folder in the setting capture, and those of channels with the driver file. They are in the order of their events. A page with a filter is searched for at most a moment: if searched_until is present, continue with next."
	read(a, list, mayRead, a.listCaptured)
	read(a, op("get-captured", http.MethodGet, "/v1/captured/{id}", "Get a captured message with its content"), mayRead, func(ctx context.Context, c caller, in *one) (wire.CapturedContent, error) {
		m, err := a.deps.Captured.Show(ctx, c.service, in.ID)
		m.Headers, m.Parts, m.Links, m.Attachments = orEmpty(m.Headers), orEmpty(m.Parts), orEmpty(m.Links), orEmpty(m.Attachments)
		return m, err
	})
	id := param("id", "id of the delivery (dlv-...)")

	page := op("show-captured-html", http.MethodGet, "/v1/captured/{id}/html", "Show the HTML of a captured message")
	page.Description = "Images in the message are shown, and images from other servers are not. A content security policy prevents scripts, requests and forms."
	page.Parameters = []*huma.Param{id, service()}
	replies[string](a, &page, http.StatusOK, "The HTML", "text/html")
	a.handle(page, mayRead, func(x *responseWriter, r *http.Request, c caller) error {
		text, err := a.deps.Captured.HTML(r.Context(), c.service, r.PathValue("id"))
		if err == nil {
			x.capturedHeaders("text/html; charset=utf-8")
			httpio.WriteAll(x, http.StatusOK, text)
		}
		return err
	})

	source := op("get-captured-source", http.MethodGet, "/v1/captured/{id}/source", "Get a captured message as it is")
	source.Parameters = []*huma.Param{id, service()}
	replies[string](a, &source, http.StatusOK, "The message", "text/plain")
	a.handle(source, mayRead, a.capturedSource)

	attachment := op("get-captured-attachment", http.MethodGet, "/v1/captured/{id}/attachments/{number}", "Download an attachment of a captured message")
	number := param("number", "number of the attachment, from 1")
	attachment.Parameters = []*huma.Param{id, number, service()}
	replies[any](a, &attachment, http.StatusOK, "The content of the attachment", "application/octet-stream")
	a.handle(attachment, mayRead, a.capturedAttachment)

	act(a, op("delete-captured", http.MethodDelete, "/v1/captured/{id}", "Delete a captured message"), mayConfigure, func(ctx context.Context, c caller, in *one) error {
		err := a.deps.Captured.Delete(c.service, in.ID)
		if err == nil {
			a.note(ctx, audit.Operation{Service: c.service, Action: "delete", Kind: "captured-message", Name: in.ID}, nil)
		}
		return err
	})
	remove := op("clear-captured", http.MethodDelete, "/v1/captured", "Delete all captured messages of the service")
	remove.Description = "A key for all services that specifies no service deletes those of all services. Messages of channels with the driver file are not deleted."
	act(a, remove, mayConfigure, func(ctx context.Context, c caller, _ *Named) error {
		removed, err := a.deps.Captured.Clear(ctx, c.service)
		if err == nil || removed > 0 {
			a.note(context.WithoutCancel(ctx), audit.Operation{Service: c.service, Action: "delete", Kind: "captured-message"}, &audit.Detail{Counts: map[string]int64{"deleted": int64(removed)}})
		}
		return err
	})
}

func (a *API) listCaptured(ctx context.Context, c caller, in *capturedOf) (wire.CapturedPage, error) {
	l := listingOf("captured", c.service, in.Channel, in.Recipient, in.Subject)
	before, err := l.key(in.Cursor)
	if err != nil {
		return wire.CapturedPage{}, err
	}
	page, next, searched, err := a.deps.Captured.List(ctx, c.service, CapturedQuery{Channel: in.Channel, Recipient: in.Recipient, Subject: in.Subject, Before: before, Limit: in.Limit})
	return wire.CapturedPage{Captured: orEmpty(page), Next: l.next(next), SearchedUntil: searched}, err
}

// capturedHeaders sets the headers of content that comes from a message.
func (x *responseWriter) capturedHeaders(contentType string) {
	h := x.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Security-Policy", capturedPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func (a *API) capturedSource(x *responseWriter, r *http.Request, c caller) error {
	file, size, err := a.deps.Captured.Source(c.service, r.PathValue("id"))
	if err != nil {
		return err
	}
	defer file.Close()
	x.capturedHeaders("text/plain; charset=utf-8")
	x.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	httpio.AllowLongResponse(x)
	x.WriteHeader(http.StatusOK)
	_, err = io.Copy(x, io.LimitReader(file, size))
	return err
}

func (a *API) capturedAttachment(x *responseWriter, r *http.Request, c caller) error {
	number, err := strconv.Atoi(r.PathValue("number"))
	if err != nil {
		return &fanfare.Error{Code: fanfare.NotFound, Message: "attachment " + strconv.Quote(clip(r.PathValue("number"))) + " does not exist", Hint: "use the number of an attachment, from 1"}
	}
	name, content, err := a.deps.Captured.Attachment(r.Context(), c.service, r.PathValue("id"), number)
	if err != nil {
		return err
	}
	x.capturedHeaders("application/octet-stream")
	x.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	httpio.AllowLongResponse(x)
	httpio.WriteAll(x, http.StatusOK, content)
	return nil
}

// clip returns the start of a text that a client sent.
func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), 50)], "") }
