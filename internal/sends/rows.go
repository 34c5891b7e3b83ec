package sends

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/control"
)

// A storedRow is a row of a list as it is stored.
type storedRow struct {
	Row        int64            `json:"r"`           // number in the uploaded file
	To         string           `json:"t,omitempty"` // address in normal form, or as it was written if it is not valid
	Subscriber string           `json:"s,omitempty"` // id, instead of an address
	Address    string           `json:"a,omitempty"` // address of the subscriber
	Place      fanfare.RowID    `json:"p,omitempty"` // row id of the address; 0: no subscriber had it
	Data       json.RawMessage  `json:"d,omitempty"`
	Suppressed string           `json:"x,omitempty"` // why nothing may be sent to the address
	Errors     []wire.SendError `json:"e,omitempty"` // none: the row is valid
	Damaged    bool             `json:"b,omitempty"` // the file has not the cells of the row, so that it cannot be checked again
	Erased     bool             `json:"z,omitempty"` // the person was erased
}

// valid reports whether a message is sent to the row.
func (r *storedRow) valid() bool { return len(r.Errors) == 0 && !r.Erased }

// name returns the address or the id of a row.
func (r *storedRow) name() string {
	if r.To != "" {
		return r.To
	}
	return r.Subscriber
}

// wire returns the row in the form of the API.
func (r *storedRow) wire() wire.SendRow {
	return wire.SendRow{Row: r.Row, To: r.To, Subscriber: r.Subscriber, Data: r.Data, Suppressed: r.Suppressed, Errors: r.Errors, Erased: r.Erased}
}

// recipient returns the row as a recipient of a message.
func (r *storedRow) recipient() wire.To {
	return wire.To{To: r.To, Subscriber: r.Subscriber, Data: r.Data}
}

// pack encodes values as compressed lines of JSON.
func pack[T any](list []T) ([]byte, error) {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	for i := range list {
		if err := lines.Encode(&list[i]); err != nil {
			return nil, err
		}
	}
	return checksum.Add(0, s2.EncodeBetter(nil, text.Bytes())), nil
}

// unpack decodes the result of pack.
func unpack[T any](blob []byte) (list []T, err error) {
	packed, valid := checksum.Verify(0, blob)
	if !valid {
		return nil, checksum.Damaged("a part of the rows of the send")
	}
	text, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, fmt.Errorf("stored rows are damaged: %w", err)
	}
	list = make([]T, bytes.Count(text, []byte("\n")))
	lines := json.NewDecoder(bytes.NewReader(text))
	for i := range list {
		if err := lines.Decode(&list[i]); err != nil {
			return nil, fmt.Errorf("stored rows are damaged: %w", err)
		}
	}
	return list, nil
}

// A storedOutcome is the result of a part as it is stored.
type storedOutcome struct {
	Places  []fanfare.RowID       `json:"places"`            // of the recipients, in their order; 0: refused
	Refused []wire.RecipientError `json:"refused,omitempty"` // index: among the recipients
}

// rows reads a chunk of the list of a send.
func (s *Sends) rows(ctx context.Context, x *send, chunk int64) ([]storedRow, error) {
	blob, err := s.Store.SendRows(ctx, x.ID, x.List.Upload, chunk)
	if err != nil {
		return nil, control.UserError(err, "the list could not be read")
	}
	if blob == nil {
		return nil, fmt.Errorf("chunk %d of upload %d of send %s does not exist", chunk, x.List.Upload, x.ID)
	}
	return unpack[storedRow](blob)
}

// listOf returns a send that has a list.
func (s *Sends) listOf(service, id string) (send, error) {
	e, err := s.find(service, id)
	if err != nil {
		return send{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.send.List == nil {
		return send{}, &fanfare.Error{Code: fanfare.NotFound, Message: "the send has no recipients", Hint: "upload a list with fanfare sends upload or PUT /v1/sends/" + id + "/recipients"}
	}
	return e.send, nil
}

// chunksAfter lists the chunks of a list with rows after a number.
func (s *Sends) chunksAfter(ctx context.Context, x *send, row int64) ([]control.SendRows, error) {
	all, err := s.Store.SendChunks(ctx, x.ID)
	if err != nil {
		return nil, control.UserError(err, "the list could not be read")
	}
	all = slices.DeleteFunc(all, func(c control.SendRows) bool { return c.Upload != x.List.Upload })
	from := 0
	for i := range all {
		if all[i].First <= row {
			from = i
		}
	}
	return all[from:], nil
}

// Rows returns rows of a list after a number, at most limit. next is the number of the last one, 0 at the end.
func (s *Sends) Rows(ctx context.Context, service, id string, after int64, limit int) (page []wire.SendRow, next int64, err error) {
	x, err := s.listOf(service, id)
	if err != nil {
		return nil, 0, err
	}
	chunks, err := s.chunksAfter(ctx, &x, after)
	if err != nil {
		return nil, 0, err
	}
	page = []wire.SendRow{}
	for i := range chunks {
		rows, err := s.rows(ctx, &x, chunks[i].Chunk)
		if err != nil {
			return nil, 0, err
		}
		for j := range rows {
			if rows[j].Row <= after {
				continue
			}
			if len(page) == limit {
				return page, page[limit-1].Row, nil
			}
			page = append(page, rows[j].wire())
		}
	}
	return page, 0, nil
}

// Errors returns a page of the errors of the last upload: those of one that was refused, or of the rows that are skipped. next is the number of the next page, 0 at
// the end.
func (s *Sends) Errors(ctx context.Context, service, id string, page int64) (list []wire.SendError, next int64, err error) {
	e, err := s.find(service, id)
	if err != nil {
		return nil, 0, err
	}
	e.mu.Lock()
	of := e.send.List
	if e.send.Refused != nil {
		of = e.send.Refused
	}
	e.mu.Unlock()
	if of == nil {
		return []wire.SendError{}, 0, nil
	}
	blob, err := s.Store.SendErrors(ctx, id, of.Upload, page)
	if err != nil || blob == nil {
		return []wire.SendError{}, 0, err
	}
	if list, err = unpack[wire.SendError](blob); err != nil || len(list) < errorsPerPage {
		return list, 0, err
	}
	return list, page + 1, nil
}

// Preview returns the message to a row.
func (s *Sends) Preview(ctx context.Context, service, id string, row int64) (wire.Preview, error) {
	x, err := s.listOf(service, id)
	if err != nil {
		return wire.Preview{}, err
	}
	chunks, err := s.chunksAfter(ctx, &x, row)
	if err != nil {
		return wire.Preview{}, err
	}
	missing := &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the list has no row %d", row), Hint: "rows are counted as a spreadsheet shows them: the header is row 1"}
	if len(chunks) == 0 {
		return wire.Preview{}, missing
	}
	rows, err := s.rows(ctx, &x, chunks[0].Chunk)
	if err != nil {
		return wire.Preview{}, err
	}
	at := slices.IndexFunc(rows, func(r storedRow) bool { return r.Row == row })
	switch {
	case at < 0 || rows[at].Erased:
		return wire.Preview{}, missing
	case !rows[at].valid():
		return wire.Preview{}, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("row %d is invalid, and gets no message: %s", row, rows[at].Errors[0].Detail), Hint: rows[at].Errors[0].Hint}
	}
	checker, _, err := s.Messages.NewChecker(ctx, x.Service, x.request())
	if err != nil {
		return wire.Preview{}, err
	}
	return checker.Render(ctx, rows[at].recipient())
}
