package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/listener"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/address"
)

// Messages accepts direct messages and reports their state.
type Messages interface {
	// Send returns when the message is durable. An error means that nothing
	// was stored.
	Send(ctx context.Context, service string, m *wire.MessageRequest, once Once) (Sent, error)
	// Try returns the result of a dry run. It stores nothing.
	Try(ctx context.Context, service string, m *wire.MessageRequest) (wire.MessageRun, error)
	// Message returns a message of a service, or of any service (""), or NotFound.
	Message(ctx context.Context, service string, ref fanfare.EventRef) (wire.Message, error)
	// WithReference lists the messages of a service with a reference, the latest first,
	// starting before a given message (zero: with the latest).
	WithReference(ctx context.Context, service, reference string, before fanfare.EventRef, limit int) ([]wire.Message, error)
	// Await returns a channel that is closed when a message is settled after this
	// call. forget ends the wait and may be called twice.
	Await(ref fanfare.EventRef) (done <-chan struct{}, forget func())
}

// Once identifies a send, so that repeated requests send only once: the
// Idempotency-Key of the client, or "", and a digest of the body.
type Once struct{ Key, Digest string }

// Sent is the result of a send.
type Sent struct {
	Ref     fanfare.EventRef
	Message wire.Message
	Again   bool // it is the message of an earlier request with the same key
}

// maxWaiting limits the requests that wait for a message at the same time. Further
// ones get 503 before anything is stored.
const maxWaiting = 2000

func (a *API) messageRoutes() {
	tags := []string{"messages"}
	wait := query("wait", "such as 5s, at most "+strconv.Itoa(wire.MaxWaitSeconds)+"s: wait until all deliveries are settled, but at most this long, before the response")
	post := huma.Operation{OperationID: "send-message", Method: http.MethodPost, Path: "/v1/messages", Tags: tags,
		Summary: "Send a message to named recipients",
		Description: "One recipient (to, or subscriber) or a list (recipients, at most " + strconv.Itoa(wire.MaxRecipients) + "), with a template or its own content. " +
			"Before anything is stored, each message is rendered completely, so that a missing variable is reported immediately. " +
			"Invalid recipients in a list are skipped and reported in errors, unless all_or_nothing is set. " +
			"With the header Idempotency-Key, repeated requests send the message only once: a request with the same key and body gets the first message " +
			"(and the header Idempotency-Replayed) for at least an hour, also after a restart; the same key with another body is rejected.",
		Parameters: []*huma.Param{service(), wait,
			{Name: "Idempotency-Key", In: "header", Description: "your own key, a new one for each message: visible ASCII, at most " + strconv.Itoa(wire.MaxKeyBytes) + " bytes, with or without quotes", Schema: &huma.Schema{Type: "string"}}},
		RequestBody: body[wire.MessageRequest](a, "The message", "application/json")}
	replies[wire.Message](a, &post, http.StatusCreated, "Stored durably; it will be delivered, also after a crash of the server", "application/json")
	a.handle(post, mayPublish, a.sendMessage)

	one := huma.Operation{OperationID: "get-message", Method: http.MethodGet, Path: "/v1/messages/{id}", Tags: tags,
		Summary: "Show a message and its state", Parameters: []*huma.Param{param("id", "id of the message, msg-..."), service(), wait}}
	replies[wire.Message](a, &one, http.StatusOK, "The message and its state", "application/json")
	a.handle(one, mayFollow, a.getMessage)

	type withReference struct {
		Page
		Reference string `query:"reference" required:"true" minLength:"1" maxLength:"200" doc:"the reference with which the messages were sent"`
	}
	read(a, huma.Operation{OperationID: "list-messages", Method: http.MethodGet, Path: "/v1/messages", Tags: tags,
		Summary: "List the messages with a reference, the latest first", Description: "A message appears in the list shortly after it was sent. /v1/broadcasts?kind=message lists all messages, with any reference."}, mayFollow,
		func(ctx context.Context, c caller, in *withReference) (page wire.MessagePage, err error) {
			service, err := a.oneService(c)
			if err != nil {
				return page, err
			}
			list := listingOf("messages", service, in.Reference)
			key, err := list.key(in.Cursor)
			if err != nil {
				return page, err
			}
			before, _ := fanfare.ParseEventRef(key) // zero on the first page
			if page.Messages, err = a.deps.Messages.WithReference(ctx, service, in.Reference, before, in.Limit+1); err != nil {
				return page, err
			}
			if len(page.Messages) > in.Limit {
				page.Messages = page.Messages[:in.Limit]
				page.Next = list.cursor(page.Messages[in.Limit-1].ID)
			}
			return page, nil
		})
}

func (a *API) sendMessage(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	patience, leave, err := a.mayWait(r)
	if err != nil {
		return err
	}
	defer leave()
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	request, digest, err := readMessage(x, r)
	if err != nil {
		return err
	}
	once := Once{Key: key}
	if key != "" {
		once.Digest = digest
	}
	sent, err := a.deps.Messages.Send(r.Context(), service, request, once)
	if err != nil {
		return err
	}
	if patience > 0 {
		refused := sent.Message.Errors
		if sent.Message, err = a.settled(x, r, service, sent.Ref, patience); err != nil {
			return err
		}
		sent.Message.Errors = refused
	}
	if sent.Again {
		x.Header().Set("Idempotency-Replayed", "true")
	}
	x.Header().Set("Location", "/v1/messages/"+url.PathEscape(sent.Message.ID))
	return httpio.WriteJSON(x, http.StatusCreated, "application/json", sent.Message)
}

func (a *API) getMessage(x *responseWriter, r *http.Request, c caller) error {
	patience, leave, err := a.mayWait(r)
	if err != nil {
		return err
	}
	defer leave()
	id := r.PathValue("id")
	ref, ok := fanfare.ParseEventRef(id)
	if !ok {
		return problem.NotFound("message", id)
	}
	message, err := a.deps.Messages.Message(r.Context(), c.service, ref)
	if err == nil && patience > 0 && !message.Settled() {
		message, err = a.settled(x, r, c.service, ref, patience)
	}
	if err != nil {
		return err
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", message)
}

// settled waits until a message is settled, at most for patience, and returns its
// state at that point.
func (a *API) settled(x *responseWriter, r *http.Request, service string, ref fanfare.EventRef, patience time.Duration) (wire.Message, error) {
	// A request ends if nothing is read from its connection for ReadTimeout.
	if err := http.NewResponseController(x).SetReadDeadline(time.Now().Add(patience + listener.ReadTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return wire.Message{}, err
	}
	ctx := r.Context()
	done, forget := a.deps.Messages.Await(ref)
	defer forget()
	message, err := a.deps.Messages.Message(ctx, service, ref) // it may have been settled before the wait began
	if err != nil || message.Settled() {
		return message, err
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	case <-a.stopping:
	case <-ctx.Done():
		return message, ctx.Err()
	}
	return a.deps.Messages.Message(ctx, service, ref)
}

// mayWait returns how long a request wants to wait, and reserves a slot for it until
// leave is called.
func (a *API) mayWait(r *http.Request) (patience time.Duration, leave func(), err error) {
	patience, err = waitOf(r)
	if err != nil || patience == 0 {
		return 0, func() {}, err
	}
	select {
	case a.waiting <- struct{}{}:
		return patience, func() { <-a.waiting }, nil
	default:
		return 0, nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "too many requests are waiting for a result", Hint: "omit wait, or try again shortly"}
	}
}

// waitOf reads the query parameter wait; 0 means not to wait.
func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if seconds, plain := strconv.Atoi(text); plain == nil {
		wait, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || wait < 0 || wait > wire.MaxWaitSeconds*time.Second {
		return 0, &fanfare.Error{Code: fanfare.Invalid, Message: "wait=" + strconv.Quote(text) + " is not a valid duration", Hint: fmt.Sprintf("use a duration from 0s to %ds, such as 5s", wire.MaxWaitSeconds)}
	}
	return wait, nil
}

// idempotencyKey reads the header of draft-ietf-httpapi-idempotency-key-header:
// a string in quotes (RFC 8941, section 3.3.3) or, as many clients send it,
// without quotes.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	wrong := &fanfare.Error{Code: fanfare.Invalid, Message: "the Idempotency-Key header is not valid", Hint: fmt.Sprintf("send one value of 1 to %d visible ASCII characters, such as a UUID", wire.MaxKeyBytes)}
	key := strings.TrimSpace(values[0])
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if len(values) > 1 || key == "" || len(key) > wire.MaxKeyBytes {
		return "", wrong
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' || key[i] == '"' {
			return "", wrong
		}
	}
	return key, nil
}

// readMessage reads the body and checks everything that needs only the body. The
// digest is of the raw body.
func readMessage(x *responseWriter, r *http.Request) (*wire.MessageRequest, string, error) {
	if mt := httpio.MediaType(r.Header); mt != "" && mt != "application/json" {
		return nil, "", httpio.UnknownType(mt, "application/json")
	}
	text, err := httpio.ReadUpTo(x, r, wire.MaxMessageBytes)
	if err != nil {
		return nil, "", err
	}
	m := &wire.MessageRequest{}
	if err := httpio.DecodeStrictly(text, m); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(text)
	return m, hex.EncodeToString(sum[:16]), checkMessage(m)
}

// checkMessage checks a request by itself, except the recipients of a list, each of which
// is checked separately.
func checkMessage(m *wire.MessageRequest) error {
	wrong := func(pointer, hint, message string) error {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}
	}
	ways := 0
	for _, given := range []bool{m.To != "", m.Subscriber != "", m.Recipients != nil} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return wrong("/to", "set to (an address), subscriber (an id) or recipients (a list)", "the message must have exactly one of to, subscriber and recipients")
	case m.Recipients != nil && len(m.Recipients) == 0:
		return wrong("/recipients", "add at least one recipient", "the list of recipients is empty")
	case len(m.Recipients) > wire.MaxRecipients:
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/recipients", Message: fmt.Sprintf("the message has %d recipients; at most %d are allowed", len(m.Recipients), wire.MaxRecipients), Hint: "split the list into several messages, or let people subscribe to a topic"}
	case (m.Template != "") == (m.Content != nil):
		return wrong("/template", "set template to a name, or set content with a subject and text or html", "the message must have either template or content")
	case m.AllOrNothing && m.Recipients == nil:
		return wrong("/all_or_nothing", "omit it", "all_or_nothing is only valid with a list of recipients")
	case len(m.Reference) > wire.MaxReferenceBytes || !utf8.ValidString(m.Reference) || strings.ContainsFunc(m.Reference, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return wrong("/reference", fmt.Sprintf("use one line of at most %d bytes", wire.MaxReferenceBytes), "the reference is not valid")
	case !isObject(m.Data):
		return wrong("/data", "", "data must be an object")
	case len(m.Attachments) > wire.MaxMessageFiles:
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/attachments", Message: fmt.Sprintf("the message has %d attachments; at most %d are allowed", len(m.Attachments), wire.MaxMessageFiles), Hint: "combine the files, or link to them"}
	}
	if err := checkMailHeaders(m); err != nil {
		return err
	}
	size := 0
	for i := range m.Attachments {
		if size += len(m.Attachments[i].Content); size > wire.MaxFilesBytes {
			return &fanfare.Error{Code: fanfare.TooLarge, Pointer: fmt.Sprintf("/attachments/%d/content", i), Message: fmt.Sprintf("with this file, the attachments total %d bytes; at most %d are allowed", size, wire.MaxFilesBytes),
				Hint: "link to large files, or attach them to a template"}
		}
		if cid := m.Attachments[i].CID; cid != "" && !cidPattern.MatchString(cid) {
			return wrong(fmt.Sprintf("/attachments/%d/cid", i), "use a to z, 0 to 9 and _ . -, at most 64 characters", "cid is not a valid image name")
		}
	}
	return nil
}

// checkMailHeaders checks the values of a request that become headers of a mail.
func checkMailHeaders(m *wire.MessageRequest) error {
	if m.ReplyTo != "" {
		if a, err := mail.ParseAddress(m.ReplyTo); err != nil || len(m.ReplyTo) > 320 {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/reply_to", Message: "reply_to is not an email address", Hint: "write it as support@example.org or Support <support@example.org>"}
		} else if _, err := address.Parse(a.Address); err != nil {
			return fanfare.Below("/reply_to", err)
		}
	}
	if m.Unsubscribe != "" {
		normal, err := address.ParseURL(m.Unsubscribe)
		switch {
		case err != nil:
			return fanfare.Below("/unsubscribe_url", err)
		case !strings.HasPrefix(normal, "https://"):
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/unsubscribe_url", Message: "unsubscribe_url does not use https", Hint: "mail programs only accept https URLs for one-click unsubscribe"}
		}
		m.Unsubscribe = normal
	}
	return nil
}

// cidPattern matches the names by which HTML refers to images.
var cidPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?$`)

// isObject reports whether raw is a JSON object or absent.
func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) == 0 || raw[0] == '{'
}
