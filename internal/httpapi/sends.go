package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/csvrows"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Sends are messages to uploaded lists; *sends.Sends has these methods. A service of "" means any service. by is who asks.
type Sends interface {
	Create(ctx context.Context, by catalog.Principal, service string, in *wire.SendRequest) (wire.Send, error)
	List(ctx context.Context, by catalog.Principal, service, state, after string, limit int) (page []wire.Send, next string)
	Get(ctx context.Context, by catalog.Principal, service, id string) (wire.Send, error)
	Change(ctx context.Context, by catalog.Principal, service, id string, edit func(*wire.SendRequest) error) (wire.Send, error)
	Delete(ctx context.Context, service, id string) error
	Upload(ctx context.Context, by catalog.Principal, service, id, address string, body io.Reader) (wire.SendUpload, error)
	Rows(ctx context.Context, service, id string, after int64, limit int) (page []wire.SendRow, next int64, err error)
	Errors(ctx context.Context, service, id string, page int64) (list []wire.SendError, next int64, err error)
	Preview(ctx context.Context, service, id string, row int64) (wire.Preview, error)
	Submit(ctx context.Context, by catalog.Principal, service, id string) (wire.Send, error)
	Approve(ctx context.Context, by catalog.Principal, service, id, digest string) (wire.Send, error)
	Pause(ctx context.Context, by catalog.Principal, service, id, reason string) (wire.Send, error)
	Resume(ctx context.Context, by catalog.Principal, service, id, reason string) (wire.Send, error)
	Cancel(ctx context.Context, by catalog.Principal, service, id, reason string) (wire.Send, error)
	Report(ctx context.Context, service, id string, visit func(*wire.SendOutcome) error) error
}

const (
	uploadIdle    = 60 * time.Second // between two reads of an upload
	lingerUpload  = 5 * time.Second  // for reading the rest of an upload that is refused
	lingerBytes   = 64 << 20
	maxStopReason = 1000
)

// OneSend is the input of a request for one send.
type OneSend struct {
	Named
	ID string `path:"id" doc:"id of the send, snd-..."`
}

func (a *API) sendRoutes() {
	tags := []string{"sends"}
	op := func(id, method, path, summary string, parameters ...*huma.Param) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: tags, Summary: summary, Parameters: parameters}
	}
	id := param("id", "id of the send, snd-...")

	create := op("create-send", http.MethodPost, "/v1/sends", "Create a message to a list", service())
	create.Description = "The send is a draft. Upload its list next, then submit it. A second person approves it, unless the service has the setting send_approval: none. It is sent at send_at."
	create.RequestBody = body[wire.SendRequest](a, "The message without its list", "application/json")
	replies[wire.Send](a, &create, http.StatusCreated, "The draft", "application/json")
	a.handle(create, mayEditSends, a.createSend)

	type withState struct {
		Page
		State string `query:"state" enum:"draft,submitted,scheduled,sending,paused,completed,cancelled" doc:"only sends in this state"`
	}
	read(a, op("list-sends", http.MethodGet, "/v1/sends", "List the sends, the latest first"), maySeeSends,
		func(ctx context.Context, c caller, in *withState) (page wire.SendPage, err error) {
			l := listingOf("sends", c.service, in.State)
			after, err := l.key(in.Cursor)
			if err != nil {
				return page, err
			}
			list, next := a.deps.Sends.List(ctx, c.principal, c.service, in.State, after, in.Limit)
			return wire.SendPage{Sends: list, Next: l.next(next)}, nil
		})
	read(a, op("get-send", http.MethodGet, "/v1/sends/{id}", "Get a send and its progress"), maySeeSends,
		func(ctx context.Context, c caller, in *OneSend) (wire.Send, error) {
			return a.deps.Sends.Get(ctx, c.principal, c.service, in.ID)
		})

	change := op("change-send", http.MethodPatch, "/v1/sends/{id}", "Change a send that has not begun", id, service())
	change.Description = "The send becomes a draft, and an approval of it ends. If you change the channel, the template or the data, the rows of the list are checked again when you submit the send."
	change.RequestBody = body[wire.SendPatch](a, "The members to change", httpio.MergePatch, "application/json")
	replies[wire.Send](a, &change, http.StatusOK, "The send as it is now", "application/json")
	a.handle(change, mayEditSends, a.changeSend)

	act(a, op("delete-send", http.MethodDelete, "/v1/sends/{id}", "Delete a send with its list"), mayEditSends,
		func(ctx context.Context, c caller, in *OneSend) error {
			send, err := a.deps.Sends.Get(ctx, c.principal, c.service, in.ID)
			if err == nil {
				err = a.deps.Sends.Delete(ctx, c.service, in.ID)
			}
			if err == nil {
				a.noteSend(ctx, &send, "delete", nil)
			}
			return err
		})

	upload := op("put-recipients", http.MethodPut, "/v1/sends/{id}/recipients", "Upload the list of a send", id, service(),
		query("address", "name of the column with the addresses; default: to"))
	upload.Description = "The body is CSV in UTF-8 with a header. The delimiter is a comma, a semicolon or a tab. One column has the addresses; with the column subscriber, rows can have the id of a subscriber instead. " +
		"Every other column is the value sub.COLUMN of the template; an empty cell is a missing value. Each row is checked as a message to it would be, and its message is rendered. " +
		"A list with an invalid row is refused as a whole, and the list before it remains; errors has the first 100 errors, with the number of the row in line and the column in pointer, and GET /v1/sends/{id}/errors has the others. " +
		"With skip_invalid, the invalid rows are stored and skipped. At most 1,000,000 rows, 200 columns, 64 KiB per row and 256 MiB in total."
	upload.RequestBody = &huma.RequestBody{Description: "The list", Required: true, Content: map[string]*huma.MediaType{csvType: {Schema: &huma.Schema{Type: huma.TypeString}}}}
	replies[wire.SendUpload](a, &upload, http.StatusOK, "Stored durably; the send is a draft", "application/json")
	a.handle(upload, mayEditSends, a.uploadRecipients)

	type rowPage struct {
		OneSend
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"maximum number of entries per page"`
		Cursor string `query:"cursor" maxLength:"600" doc:"the value of next from the previous page; default: the first page"`
	}
	read(a, op("list-recipients", http.MethodGet, "/v1/sends/{id}/recipients", "List the rows of the list of a send"), maySeeSends,
		func(ctx context.Context, c caller, in *rowPage) (page wire.SendRowPage, err error) {
			l := listingOf("send-rows", c.service, in.ID)
			after, err := numberKey(l, in.Cursor)
			if err != nil {
				return page, err
			}
			var next int64
			if page.Rows, next, err = a.deps.Sends.Rows(ctx, c.service, in.ID, after, in.Limit); next > 0 {
				page.Next = l.cursor(strconv.FormatInt(next, 10))
			}
			return page, err
		})
	type errorPage struct {
		OneSend
		Cursor string `query:"cursor" maxLength:"600" doc:"the value of next from the previous page; default: the first page"`
	}
	wrong := op("list-send-errors", http.MethodGet, "/v1/sends/{id}/errors", "List the errors of the last upload of a send")
	wrong.Description = "A page has 100 errors, and there are at most 10,000. The report of the send has all rows that are skipped."
	read(a, wrong, maySeeSends,
		func(ctx context.Context, c caller, in *errorPage) (page wire.SendErrorPage, err error) {
			l := listingOf("send-errors", c.service, in.ID)
			number, err := numberKey(l, in.Cursor)
			if err != nil {
				return page, err
			}
			var next int64
			if page.Errors, next, err = a.deps.Sends.Errors(ctx, c.service, in.ID, number); next > 0 {
				page.Next = l.cursor(strconv.FormatInt(next, 10))
			}
			return page, err
		})
	type oneRow struct {
		OneSend
		Row int64 `path:"row" minimum:"1" doc:"number of the row as a spreadsheet shows it: the header is row 1"`
	}
	read(a, op("preview-recipient", http.MethodGet, "/v1/sends/{id}/recipients/{row}/preview", "Render the message to a row"), maySeeSends,
		func(ctx context.Context, c caller, in *oneRow) (wire.Preview, error) {
			return a.deps.Sends.Preview(ctx, c.service, in.ID, in.Row)
		})

	html := op("show-recipient-html", http.MethodGet, "/v1/sends/{id}/recipients/{row}/html", "Show the HTML of the message to a row", id,
		&huma.Param{Name: "row", In: "path", Required: true, Description: "number of the row as a spreadsheet shows it", Schema: &huma.Schema{Type: huma.TypeInteger}}, service())
	html.Description = "The policy of the response prevents scripts and requests. It has no images of the template."
	replies[string](a, &html, http.StatusOK, "The HTML", "text/html")
	a.handle(html, maySeeSends, func(x *responseWriter, r *http.Request, c caller) error {
		row, err := strconv.ParseInt(r.PathValue("row"), 10, 64)
		if err != nil {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "the number of the row is not a number"}
		}
		p, err := a.deps.Sends.Preview(r.Context(), c.service, r.PathValue("id"), row)
		if err != nil {
			return err
		}
		if p.HTML == "" {
			return &fanfare.Error{Code: fanfare.NotFound, Message: "the message has no HTML"}
		}
		x.capturedHeaders("text/html; charset=utf-8")
		_, err = io.WriteString(x, p.HTML)
		return err
	})

	submit := op("submit-send", http.MethodPost, "/v1/sends/{id}/submit", "Submit a draft for approval", id, service())
	submit.Description = "The version of the template is fixed. If the service has the setting send_approval: none, and the send has no more recipients than hold_above, the send is scheduled at once. The response can take some minutes if the rows must be checked again."
	replies[wire.Send](a, &submit, http.StatusOK, "The send as it is now", "application/json")
	a.handle(submit, mayEditSends, func(x *responseWriter, r *http.Request, c caller) error {
		httpio.AllowLongResponse(x)
		return a.answerSend(x, r, "submit", func() (wire.Send, error) {
			return a.deps.Sends.Submit(r.Context(), c.principal, c.service, r.PathValue("id"))
		})
	})

	approve := op("approve-send", http.MethodPost, "/v1/sends/{id}/approve", "Approve a send", id, service())
	approve.Description = "The approver names the digest of what they saw. An author cannot approve: a person who created the send or changed it since, by their key, by the owner of their key, or by their sign-in."
	approve.RequestBody = body[wire.SendApproval](a, "The digest of the approved content", "application/json")
	replies[wire.Send](a, &approve, http.StatusOK, "The send as it is now", "application/json")
	a.handle(approve, mayApprove, func(x *responseWriter, r *http.Request, c caller) error {
		var in wire.SendApproval
		if err := httpio.ReadJSON(x, r, &in); err != nil {
			return err
		}
		return a.answerSend(x, r, "approve", func() (wire.Send, error) {
			return a.deps.Sends.Approve(r.Context(), c.principal, c.service, r.PathValue("id"), in.Digest)
		})
	})

	for _, s := range []struct {
		name, summary, about string
		do                   func(s Sends, ctx context.Context, by catalog.Principal, service, id, reason string) (wire.Send, error)
	}{
		{"pause", "Pause a send that is being sent", "No further messages are sent until it is resumed.", Sends.Pause},
		{"resume", "Resume a paused send", "", Sends.Resume},
		{"cancel", "Cancel a send that has not ended", "Messages that were not sent yet are cancelled, also if the send has begun.", Sends.Cancel},
	} {
		stop := op(s.name+"-send", http.MethodPost, "/v1/sends/{id}/"+s.name, s.summary, id, service())
		stop.Description = s.about
		stop.RequestBody = body[wire.SendStop](a, "The reason", "application/json")
		stop.RequestBody.Required = false
		replies[wire.Send](a, &stop, http.StatusOK, "The send as it is now", "application/json")
		a.handle(stop, mayStopSends, func(x *responseWriter, r *http.Request, c caller) error {
			var in wire.SendStop
			if r.ContentLength != 0 {
				if err := httpio.ReadJSON(x, r, &in); err != nil {
					return err
				}
			}
			if len(in.Reason) > maxStopReason {
				return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/reason", Message: "the reason has more than " + strconv.Itoa(maxStopReason) + " bytes"}
			}
			httpio.AllowLongResponse(x)
			return a.answerSend(x, r, s.name, func() (wire.Send, error) {
				return s.do(a.deps.Sends, r.Context(), c.principal, c.service, r.PathValue("id"), in.Reason)
			})
		})
	}

	report := op("report-send", http.MethodGet, "/v1/sends/{id}/report", "Download the outcome of each row", id, service())
	report.Description = "CSV in UTF-8 with the columns row, address, state, reason, time and delivery. A row without a delivery has the state invalid (in the list), refused (when it was to be sent), erased, waiting, cancelled or unknown (the record of its delivery was deleted). " +
		"A value that a spreadsheet would take for a formula begins with an apostrophe."
	report.Responses = map[string]*huma.Response{"200": {Description: "The report", Content: map[string]*huma.MediaType{csvType: {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	a.handle(report, maySeeSends, a.reportSend)
}

// numberKey returns the number in a cursor, 0 without one.
func numberKey(l listing, cursor string) (int64, error) {
	key, err := l.key(cursor)
	if err != nil || key == "" {
		return 0, err
	}
	return strconv.ParseInt(key, 10, 64)
}

// noteSend records a change of a send in the audit log.
func (a *API) noteSend(ctx context.Context, send *wire.Send, action string, detail *audit.Detail) {
	a.note(context.WithoutCancel(ctx), audit.Operation{Service: send.Service, Action: action, Kind: "send", Name: send.ID}, detail)
}

// answerSend changes a send, records the action and answers with the send.
func (a *API) answerSend(x *responseWriter, r *http.Request, action string, do func() (wire.Send, error)) error {
	send, err := do()
	if err != nil {
		return err
	}
	a.noteSend(r.Context(), &send, action, sendDetail(&send))
	return httpio.WriteJSON(x, http.StatusOK, "application/json", send)
}

// sendDetail returns what an action on a send was about, for the audit log.
func sendDetail(send *wire.Send) *audit.Detail {
	detail := &audit.Detail{Fields: []audit.FieldChange{{Field: "state", New: send.State}}}
	if send.Digest != "" {
		detail.Fields = append(detail.Fields, audit.FieldChange{Field: "digest", New: send.Digest})
	}
	if l := send.Recipients; l != nil {
		detail.Counts = map[string]int64{"rows": l.Rows, "valid": l.Valid, "invalid": l.Invalid}
	}
	return detail
}

func (a *API) createSend(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	var in wire.SendRequest
	if err := httpio.ReadJSON(x, r, &in); err != nil {
		return err
	}
	send, err := a.deps.Sends.Create(r.Context(), c.principal, service, &in)
	if err != nil {
		return err
	}
	a.noteSend(r.Context(), &send, "create", nil)
	x.Header().Set("Location", "/v1/sends/"+send.ID)
	return httpio.WriteJSON(x, http.StatusCreated, "application/json", send)
}

func (a *API) changeSend(x *responseWriter, r *http.Request, c caller) error {
	p, err := readPatch[wire.SendPatch](x, r)
	if err != nil {
		return err
	}
	send, err := a.deps.Sends.Change(r.Context(), c.principal, c.service, r.PathValue("id"), func(s *wire.SendRequest) error {
		return errors.Join(p.into("name", &s.Name), p.into("channel", &s.Channel), p.into("template", &s.Template), p.into("data", &s.Data),
			p.into("send_at", &s.SendAt), p.into("lane", &s.Lane), p.into("reference", &s.Reference), p.into("skip_invalid", &s.SkipInvalid))
	})
	if err != nil {
		return err
	}
	detail := &audit.Detail{}
	for name := range p {
		detail.Changed = append(detail.Changed, name)
	}
	a.noteSend(r.Context(), &send, "update", detail)
	return httpio.WriteJSON(x, http.StatusOK, "application/json", send)
}

// idleReader ends an upload that does not continue for a time.
type idleReader struct {
	from io.Reader
	rc   *http.ResponseController
	stop <-chan struct{} // closed when the server stops
}

var errUploadStopped = &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "nothing was stored; send the request again shortly"}

func (r *idleReader) Read(b []byte) (int, error) {
	select {
	case <-r.stop:
		return 0, errUploadStopped
	default:
	}
	if err := r.rc.SetReadDeadline(time.Now().Add(uploadIdle)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return r.from.Read(b)
}

func (a *API) uploadRecipients(x *responseWriter, r *http.Request, c caller) error {
	if mt := httpio.MediaType(r.Header); mt != csvType && mt != "" && mt != "application/octet-stream" { // which generated clients send
		return httpio.UnknownType(mt, csvType)
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "Content-Encoding " + enc + " is not supported", Hint: "send the list without Content-Encoding"}
	}
	tooLarge := &fanfare.Error{Code: fanfare.TooLarge, Message: "the list is larger than 256 MiB", Hint: "divide it, and create a send for each part"}
	if r.ContentLength > wire.MaxSendBytes {
		x.Header().Set("Connection", "close")
		return tooLarge
	}
	httpio.AllowLongResponse(x)
	rc := http.NewResponseController(x)
	in := &idleReader{http.MaxBytesReader(x, r.Body, wire.MaxSendBytes), rc, a.stopping}
	result, err := a.deps.Sends.Upload(r.Context(), c.principal, c.service, r.PathValue("id"), r.URL.Query().Get("address"), in)
	httpio.AllowLongResponse(x) // the upload may have taken longer
	if err != nil {
		if _, ours := errors.AsType[*fanfare.Error](err); !ours {
			if _, over := errors.AsType[*http.MaxBytesError](err); over {
				err = tooLarge
			} else if isBodyError(err) {
				err = httpio.BodyError(err, wire.MaxSendBytes)
			}
		}
		// A connection that is closed with unread data is reset, and the client could lose the response.
		_ = rc.SetReadDeadline(time.Now().Add(lingerUpload))
		_, _ = io.CopyN(io.Discard, r.Body, lingerBytes)
		return err
	}
	a.noteSend(r.Context(), &result.Send, "upload", sendDetail(&result.Send))
	return httpio.WriteJSON(x, http.StatusOK, "application/json", result)
}

// isBodyError reports whether an error is of reading a body from the network.
func isBodyError(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(err.Error(), "connection reset") || errors.Is(err, http.ErrBodyReadAfterClose)
}

func (a *API) reportSend(x *responseWriter, r *http.Request, c caller) error {
	id := r.PathValue("id")
	if _, err := a.deps.Sends.Get(r.Context(), c.principal, c.service, id); err != nil {
		return err
	}
	var out *csvStream
	begin := func() (err error) {
		if out == nil {
			out, err = newCSVStream(x, id, []string{"row", "address", "state", "reason", "time", "delivery"})
		}
		return err
	}
	err := a.deps.Sends.Report(r.Context(), c.service, id, func(o *wire.SendOutcome) error {
		if err := begin(); err != nil {
			return err
		}
		at := ""
		if !o.At.IsZero() {
			at = o.At.UTC().Format(time.RFC3339)
		}
		return out.write([]string{strconv.FormatInt(o.Row, 10), csvrows.Neutral(o.Address), o.State, csvrows.Neutral(o.Reason), at, o.Message})
	})
	if err == nil {
		err = begin()
	}
	if err != nil {
		return err
	}
	return out.flush()
}
