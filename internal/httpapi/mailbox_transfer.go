package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

const (
	maxMailLineBytes = 300 << 20        // above the largest message in base64
	importPatience   = 60 * time.Second // for the next line of an import
)

// mailboxTransferRoutes adds the endpoints that export and import the messages of a mailbox.
func (a *API) mailboxTransferRoutes(op func(id, method, path, summary string, parameters ...*huma.Param) huma.Operation) {
	address := param("address", "mail address of the subscriber")
	export := op("export-mailbox", http.MethodGet, "/v1/mailboxes/{address}/export", "Stream a mailbox with all its messages", address, service())
	export.Description = "The first line has the folders (type mailbox); each further line has a message with its folder, flags and time of arrival (type mail). The lines can be imported again. If the stream ends early, the connection is cut."
	replies[PersonalLine](a, &export, http.StatusOK, "One message on each line", httpio.NDJSON)
	a.handle(export, mayConfigure, func(x *responseWriter, r *http.Request, c caller) error {
		s, err := a.oneService(c)
		if err != nil {
			return err
		}
		out := newLineStream(x)
		if err := a.deps.Mailboxes.Export(r.Context(), s, r.PathValue("address"), func(line *PersonalLine) error { return out.write(line) }); err != nil {
			return err
		}
		return out.flush()
	})

	load := op("import-mailbox", http.MethodPost, "/v1/mailboxes/{address}/import", "Import messages into a mailbox", address, service())
	load.Description = "Each line of the body has a message with its folder, flags and time of arrival, in the form of the export. Folders that do not exist are created. The messages count in the quota. " +
		"An error ends the import and says how many messages were stored; they stay. Messages that are imported again are stored again."
	load.RequestBody = body[PersonalLine](a, "One message on each line", httpio.NDJSON)
	replies[wire.MailboxImport](a, &load, http.StatusOK, "The messages are stored", "application/json")
	a.handle(load, mayConfigure, a.importMailbox)
}

func (a *API) importMailbox(x *responseWriter, r *http.Request, c caller) error {
	s, err := a.oneService(c)
	if err != nil {
		return err
	}
	if mt := httpio.MediaType(r.Header); mt != "" && mt != httpio.NDJSON {
		return httpio.UnknownType(mt, httpio.NDJSON)
	}
	in := &mailLines{body: bufio.NewReaderSize(r.Body, 64<<10), control: http.NewResponseController(x)}
	account, stored, err := a.deps.Mailboxes.Import(r.Context(), s, r.PathValue("address"), in.next)
	httpio.AllowLongResponse(x)
	if stored > 0 {
		a.noteMailbox(context.WithoutCancel(r.Context()), &account, "import", &audit.Detail{Counts: map[string]int64{"created": int64(stored)}})
	}
	if err != nil {
		x.Header().Set("Connection", "close") // the rest of the body is not read
		return in.explain(err, stored)
	}
	if in.decoded == 0 {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the body has no messages", Hint: "send the lines of an export, or one message on each line"}
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", wire.MailboxImport{Stored: stored})
}

// mailLines reads the lines of an import.
type mailLines struct {
	body    *bufio.Reader
	control *http.ResponseController
	number  int // of the line that was read last
	decoded int // lines that were not empty
}

// next returns the next line that is not empty, or io.EOF.
func (m *mailLines) next() (*PersonalLine, error) {
	for {
		if err := m.control.SetReadDeadline(time.Now().Add(importPatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return nil, err
		}
		text, err := readLine(m.body, maxMailLineBytes)
		if len(text) > 0 || err == nil {
			m.number++
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
			return nil, err
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		m.decoded++
		line := &PersonalLine{}
		return line, httpio.DecodeStrictly(text, line)
	}
}

// readLine reads up to the end of a line, which it returns without it. At the end of the input it returns what is left, with io.EOF.
func readLine(in *bufio.Reader, limit int) (line []byte, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		if len(line)+len(piece) > limit {
			return nil, &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the line is longer than %d bytes", limit), Hint: "put one message on each line, in base64"}
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}

// explain adds the line and the number of stored messages to an error.
func (m *mailLines) explain(err error, stored int) error {
	e := fanfare.Error{Code: fanfare.Invalid, Message: "the body cannot be read"}
	if user, ok := errors.AsType[*fanfare.Error](err); ok {
		e = *user
	} else if !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	e.Message = fmt.Sprintf("at line %d: %s; %d messages were stored before", m.number, e.Message, stored)
	return &e
}
