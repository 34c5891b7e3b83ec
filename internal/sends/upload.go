package sends

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/background"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/store/control"
)

const (
	// maxChunkRows and maxChunkBytes limit a chunk, which is sent as one message: the data of its rows and that of the send are below the limit of
	// a message.
	maxChunkRows  = wire.MaxRecipients
	maxChunkBytes = 256 << 10
	rowBytes      = 48 // stored size of a recipient without its data
	// maxRowDataBytes limits the values of a row as JSON, which can be longer than the row.
	maxRowDataBytes = 128 << 10
	errorsPerPage   = 100
	maxErrorPages   = 100
)

// An upload reads and checks a list, and stores its chunks.
type upload struct {
	sends   *Sends
	send    send // when it began
	number  int64
	checker *messages.Checker
	list    list
	digest  hash.Hash

	address, person string // names of the columns
	columns         map[string]bool
	plain           map[string]string // names of columns as placeholders of GOV.UK Notify compare them

	rows   []storedRow // of the next chunk
	bytes  int         // of their values
	seen   map[uint64]int64
	text   bytes.Buffer
	values *json.Encoder // writes to text

	errors     []wire.SendError // of the next page
	errorPages int64
	first      []wire.SendError // the first page
	whole      map[string]*wholeError

	mu     sync.Mutex // held while a chunk is stored
	erased []erasure
}

// A wholeError is an error about a whole list.
type wholeError struct {
	fanfare.Error
	rows int64 // that have it
}

// Upload replaces the list of a send that was not begun, and makes the send a draft. If the list has an error, nothing changes, except that the errors
// of its rows can be listed. With skip_invalid, the rows with errors are stored and skipped.
func (s *Sends) Upload(ctx context.Context, by catalog.Principal, service, id, address string, body io.Reader) (wire.SendUpload, error) {
	e, err := s.find(service, id)
	if err != nil {
		return wire.SendUpload{}, err
	}
	u, done, err := s.begin(ctx, e)
	if err != nil {
		return wire.SendUpload{}, err
	}
	defer done()
	t, err := openTable(body, address)
	if err != nil {
		return wire.SendUpload{}, err
	}
	u.setColumns(t)
	for {
		row, cells, err := t.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = u.addCells(ctx, t, int64(row), cells)
		}
		if err != nil {
			return wire.SendUpload{}, err
		}
	}
	if err := u.finish(ctx); err != nil {
		return wire.SendUpload{}, err
	}
	return s.accept(ctx, by, e, u)
}

// begin begins an upload of a send that was not begun. done ends it, and deletes what it has stored unless it was accepted.
func (s *Sends) begin(ctx context.Context, e *entry) (u *upload, done func(), err error) {
	if !e.uploading.TryLock() {
		return nil, nil, busy()
	}
	select {
	case s.uploads <- struct{}{}:
	default:
		e.uploading.Unlock()
		return nil, nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "other lists are being uploaded or checked", Hint: "try again in a moment", RetryAfter: 5 * time.Second}
	}
	release := func() {
		<-s.uploads
		e.uploading.Unlock()
	}
	e.mu.Lock()
	u = &upload{sends: s, send: e.send, number: e.nextUpload, digest: sha256.New(), seen: map[uint64]int64{}, whole: map[string]*wholeError{}}
	e.nextUpload++
	gone := e.gone
	e.mu.Unlock()
	u.values = json.NewEncoder(&u.text)
	u.values.SetEscapeHTML(false)
	x := u.send
	err = s.Floor()
	if gone {
		err = &fanfare.Error{Code: fanfare.NotFound, Message: "the send was deleted"}
	}
	if err == nil {
		err = x.reopen(catalog.Principal{}, s.Clock.Now())
	}
	if err == nil {
		err = u.open(ctx)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	s.mu.Lock()
	s.erasing = append(s.erasing, u)
	s.mu.Unlock()
	return u, func() {
		s.mu.Lock()
		s.erasing = slices.DeleteFunc(s.erasing, func(other *upload) bool { return other == u })
		s.mu.Unlock()
		e.mu.Lock()
		kept := slices.Contains(e.send.uploads(), u.number)
		e.mu.Unlock()
		if !kept && u.list.Chunks+u.errorPages > 0 {
			if err := s.Store.DeleteUpload(context.WithoutCancel(ctx), x.ID, u.number); err != nil {
				s.Logger.Warn("cannot delete the rows of an upload that was refused; the next start deletes them", "send", x.ID, "error", err)
			}
		}
		release()
	}, nil
}

// open prepares the check of rows.
func (u *upload) open(ctx context.Context) error {
	checker, fixed, err := u.sends.Messages.NewChecker(ctx, u.send.Service, u.send.request())
	if err != nil {
		return err
	}
	u.checker = checker
	u.list = list{Upload: u.number, CheckedAs: checkedAs(fixed)}
	return nil
}

// checkedAs identifies what rows are checked with.
func checkedAs(m *wire.MessageRequest) string {
	sum := sha256.Sum256(m.Data)
	return m.Channel + "\n" + m.Template + "\n" + hex.EncodeToString(sum[:])
}

// setColumns takes the columns of a file.
func (u *upload) setColumns(t *table) {
	u.list.Address, u.list.Columns = t.addressColumn(), t.others()
	if t.address >= 0 {
		u.address = t.columns[t.address]
	}
	if t.person >= 0 {
		u.person = t.columns[t.person]
	}
	u.nameColumns()
}

func (u *upload) nameColumns() {
	u.columns, u.plain = map[string]bool{}, map[string]string{}
	for _, name := range u.list.Columns {
		u.columns[name] = true
		u.plain[liquid.PlainName(name)] = name
	}
}

// addCells adds a row of a file.
func (u *upload) addCells(ctx context.Context, t *table, number int64, cells []string) error {
	r := storedRow{Row: number}
	u.text.Reset()
	u.text.WriteByte('{')
	for i, cell := range cells {
		switch {
		case i >= len(t.columns):
		case i == t.address:
			r.To = strings.TrimSpace(cell)
		case i == t.person:
			r.Subscriber = strings.TrimSpace(cell)
		case cell != "":
			if u.text.Len() > 1 {
				u.text.WriteByte(',')
			}
			u.writeText(t.columns[i])
			u.text.WriteByte(':')
			u.writeText(cell)
		}
	}
	u.text.WriteByte('}')
	if u.text.Len() > len("{}") {
		r.Data = bytes.Clone(u.text.Bytes())
	}
	extra := len(cells) - len(t.columns)
	switch {
	case extra > 0 && slices.ContainsFunc(cells[len(t.columns):], func(cell string) bool { return strings.TrimSpace(cell) != "" }):
		r.Damaged = true
		r.Errors = []wire.SendError{{Row: number, Detail: fmt.Sprintf("the row has %d cells, but the header has %d columns", len(cells), len(t.columns)),
			Hint: "write a cell that contains the delimiter in double quotes"}}
	case len(r.Data) > maxRowDataBytes:
		r.Damaged, r.Data = true, nil
		r.Errors = []wire.SendError{{Row: number, Detail: fmt.Sprintf("the values of the row have more than %d bytes", maxRowDataBytes), Hint: "shorten them, or put the texts into the template"}}
	case r.To == "" && r.Subscriber == "":
		column := u.address
		if column == "" {
			column = u.person
		}
		r.Errors = []wire.SendError{{Row: number, Column: column, Detail: "the cell is empty", Hint: "write the address of the recipient, or remove the row"}}
		r.Damaged = true
	case r.To != "" && r.Subscriber != "":
		r.Errors = []wire.SendError{{Row: number, Column: u.person, Detail: "the row has an address and the id of a subscriber", Hint: "write only one of them"}}
		r.Damaged = true
	}
	return u.add(ctx, &r)
}

// writeText writes a JSON string.
func (u *upload) writeText(s string) {
	_ = u.values.Encode(s) // a string cannot fail
	u.text.Truncate(u.text.Len() - 1)
}

// add adds a row, and checks and stores the rows before it if they fill a chunk.
func (u *upload) add(ctx context.Context, r *storedRow) error {
	if u.list.Rows == wire.MaxSendRows {
		return &fanfare.Error{Code: fanfare.TooLarge, Line: int(r.Row), Message: fmt.Sprintf("the list has more than %d rows", wire.MaxSendRows), Hint: "divide it, and create a send for each part"}
	}
	size := rowBytes + len(r.Data)
	if len(u.rows) == maxChunkRows || len(u.rows) > 0 && u.bytes+size > maxChunkBytes {
		if err := u.flush(ctx); err != nil {
			return err
		}
	}
	u.rows, u.bytes = append(u.rows, *r), u.bytes+size
	u.list.Rows++
	background.Yield(int(u.list.Rows))
	return nil
}

// flush checks and stores a chunk.
func (u *upload) flush(ctx context.Context) error {
	if len(u.rows) == 0 {
		return nil
	}
	if err := u.check(ctx); err != nil {
		return err
	}
	if len(u.whole) > 0 { // the list is refused, whatever follows
		return u.wholeErrors()
	}
	for i := range u.rows {
		if err := u.count(ctx, &u.rows[i]); err != nil {
			return err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.rows {
		eraseFrom(&u.rows[i], u.erased)
	}
	blob, err := pack(u.rows)
	if err != nil {
		return err
	}
	err = u.sends.Store.AddSendRows(ctx, &control.SendRows{Send: u.send.ID, Upload: u.number, Chunk: u.list.Chunks, First: u.rows[0].Row, Count: int64(len(u.rows)), Rows: blob})
	if err != nil {
		return control.UserError(err, "the list could not be stored")
	}
	u.list.Chunks++
	u.rows, u.bytes = u.rows[:0], 0
	return nil
}

// check checks the rows of a chunk.
func (u *upload) check(ctx context.Context) error {
	asked := make([]wire.To, 0, len(u.rows))
	at := make([]int, 0, len(u.rows))
	for i := range u.rows {
		if r := &u.rows[i]; r.valid() {
			asked, at = append(asked, r.recipient()), append(at, i)
		}
	}
	checks, err := u.checker.Check(ctx, asked)
	if err != nil {
		return err
	}
	for k := range checks {
		r, c := &u.rows[at[k]], &checks[k]
		r.Place = c.Row
		if c.Err != nil {
			u.addError(r, c.Err)
			continue
		}
		if r.Suppressed = c.Suppressed; r.To != "" {
			r.To = c.Address
		} else {
			r.Address = c.Address
		}
		u.addMissing(r, c.Missing)
		if !r.valid() {
			continue
		}
		key := xxh3.HashString(sameAddress(c.Address))
		if first, again := u.seen[key]; again {
			r.Errors = []wire.SendError{{Row: r.Row, Column: u.columnOf(r), Detail: fmt.Sprintf("the same recipient is in row %d", first), Hint: "remove one of the two rows"}}
			continue
		}
		u.seen[key] = r.Row
	}
	return nil
}

// sameAddress returns a text that two addresses of the same recipient share: hardly a mail server tells upper case from lower case.
func sameAddress(address string) string {
	if strings.Contains(address, "@") && !strings.Contains(address, "://") {
		return strings.ToLower(address)
	}
	return address
}

// columnOf returns the name of the column that names the recipient of a row.
func (u *upload) columnOf(r *storedRow) string {
	if r.To == "" {
		return u.person
	}
	return u.address
}

// addError adds an error of a row, or of the whole list if each row has it.
func (u *upload) addError(r *storedRow, e *fanfare.Error) {
	column := ""
	switch {
	case strings.HasPrefix(e.Pointer, "/data") && strings.Contains(e.Message, liquid.UndefinedPrefix+"event."):
		u.addWhole(r, e.Message, e.Hint, "/data")
		return
	case e.Pointer == "/to", e.Pointer == "/subscriber":
		column = u.columnOf(r)
	}
	r.Errors = []wire.SendError{{Row: r.Row, Column: column, Detail: e.Message, Hint: e.Hint}}
}

// addWhole adds an error of the whole list, once.
func (u *upload) addWhole(r *storedRow, message, hint, pointer string) {
	w := u.whole[message]
	if w == nil {
		w = &wholeError{Error: fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}}
		u.whole[message] = w
	}
	w.rows++
	r.Errors = append(r.Errors, wire.SendError{Row: r.Row, Detail: message, Hint: hint})
}

// addMissing adds the values that a row lacks: an error of the row if the list has a column for them, and of the list if not.
func (u *upload) addMissing(r *storedRow, missing []string) {
	var empty []string
	for _, name := range missing {
		near := u.plain[liquid.PlainName(name)]
		switch {
		case u.columns[name]:
			empty = append(empty, name)
		case near != "" && !hasValue(r.Data, near):
			empty = append(empty, near)
		case near != "":
			u.addWhole(r, fmt.Sprintf("the template needs sub.%s, but the list has no column %s", name, inputerror.Quote(name)), "rename the column "+inputerror.Quote(near)+" to "+inputerror.Quote(name), "")
		default:
			u.addWhole(r, fmt.Sprintf("the template needs sub.%s, but the list has no column %s", name, inputerror.Quote(name)), "add the column; the list has "+names(append([]string{u.list.Address}, u.list.Columns...)), "")
		}
	}
	switch len(empty) {
	case 0:
	case 1:
		r.Errors = append(r.Errors, wire.SendError{Row: r.Row, Column: empty[0], Detail: "the cell is empty, but the template needs its value", Hint: `fill it in, or give the value a default in the template: {{ ... | default: "" }}`})
	default:
		r.Errors = append(r.Errors, wire.SendError{Row: r.Row, Detail: "the cells " + names(empty) + " are empty, but the template needs their values", Hint: `fill them in, or give the values a default in the template: {{ ... | default: "" }}`})
	}
}

// hasValue reports whether the values of a row include a name.
func hasValue(data json.RawMessage, name string) bool {
	values := map[string]json.RawMessage{}
	return len(data) > 0 && json.Unmarshal(data, &values) == nil && values[name] != nil
}

// wholeErrors returns the errors of the whole list, those of most rows first.
func (u *upload) wholeErrors() error {
	all := slices.SortedFunc(maps.Values(u.whole), func(a, b *wholeError) int {
		if a.rows != b.rows {
			return int(b.rows - a.rows)
		}
		return strings.Compare(a.Message, b.Message)
	})
	if len(all) == 1 {
		return &all[0].Error
	}
	e := &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the list has %d errors; nothing was stored", len(all)), Hint: "correct the list, and upload it again"}
	for _, w := range all[:min(len(all), wire.MaxErrors)] {
		e.Details = append(e.Details, &w.Error)
	}
	return e
}

// count counts a row that was checked.
func (u *upload) count(ctx context.Context, r *storedRow) error {
	if r.valid() {
		u.list.Valid++
		if r.Suppressed != "" {
			u.list.Suppressed++
		}
		text, err := json.Marshal([]any{r.To, r.Subscriber, r.Data})
		_, _ = u.digest.Write(text) // cannot fail
		return err
	}
	if r.Erased {
		return nil
	}
	u.list.Invalid++
	for _, e := range r.Errors {
		if len(u.first) < errorsPerPage {
			u.first = append(u.first, e)
		}
		if u.errorPages == maxErrorPages {
			return nil
		}
		u.errors = append(u.errors, e)
		if len(u.errors) == errorsPerPage {
			if err := u.flushErrors(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *upload) flushErrors(ctx context.Context) error {
	if len(u.errors) == 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	blob, err := pack(eraseErrors(u.errors, u.erased))
	if err != nil {
		return err
	}
	if err := u.sends.Store.AddSendErrors(ctx, &control.SendErrors{Send: u.send.ID, Upload: u.number, Page: u.errorPages, Errors: blob}); err != nil {
		return control.UserError(err, "the errors of the list could not be stored")
	}
	u.errorPages++
	u.errors = u.errors[:0]
	return nil
}

// finish checks and stores the last rows.
func (u *upload) finish(ctx context.Context) error {
	if err := u.flush(ctx); err != nil {
		return err
	}
	if u.list.Rows == 0 {
		return fileError("the list has a header and no rows", "write each recipient in a row of its own below the header")
	}
	u.list.UploadedAt = u.sends.Clock.Now().UTC()
	u.list.Digest = hex.EncodeToString(u.digest.Sum(nil))
	return u.flushErrors(ctx)
}

// accept makes an upload the list of its send or, if rows are invalid and must not be skipped, stores its errors and refuses it.
func (s *Sends) accept(ctx context.Context, by catalog.Principal, e *entry, u *upload) (wire.SendUpload, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	x := e.send
	if e.gone || x.Channel != u.send.Channel || x.Template != u.send.Template || !bytes.Equal(x.Data, u.send.Data) {
		return wire.SendUpload{}, &fanfare.Error{Code: fanfare.Conflict, Message: "the channel, the template or the data of the send was changed during the upload", Hint: "upload the list again"}
	}
	if err := x.reopen(by, s.Clock.Now()); err != nil {
		return wire.SendUpload{}, err
	}
	if u.list.Invalid > 0 && (!x.SkipInvalid || u.list.Valid == 0) {
		return wire.SendUpload{}, s.refuse(ctx, e, u)
	}
	replaced := x.uploads()
	x.List, x.Refused = &u.list, nil
	if err := s.replace(ctx, e, x, replaced); err != nil {
		return wire.SendUpload{}, err
	}
	return wire.SendUpload{Send: s.show(ctx, by, e), Errors: append([]wire.SendError{}, u.first...)}, nil
}

// replace stores a send whose uploads have changed, and deletes those that it had before.
func (s *Sends) replace(ctx context.Context, e *entry, x send, replaced []int64) error {
	record, err := x.record()
	if err == nil {
		err = s.Store.ReplaceSendRows(ctx, record, replaced...)
	}
	if err != nil {
		return control.UserError(err, "the list could not be stored")
	}
	e.set(x)
	return nil
}

// refuse stores the errors of an upload that is refused, and returns the first ones. The list of the send does not change. The caller has the lock of e.
func (s *Sends) refuse(ctx context.Context, e *entry, u *upload) error {
	x := e.send
	var replaced []int64
	if x.Refused != nil {
		replaced = append(replaced, x.Refused.Upload)
	}
	refused := u.list
	x.Refused = &refused
	if err := s.replace(ctx, e, x, replaced); err != nil {
		return err
	}
	if err := s.Store.DeleteSendRows(ctx, x.ID, u.number); err != nil {
		s.Logger.Warn("cannot delete the rows of an upload that was refused", "send", x.ID, "error", err)
	}
	verb := "are"
	if u.list.Invalid == 1 {
		verb = "is"
	}
	err := &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("%d of %d rows %s invalid; nothing was stored", u.list.Invalid, u.list.Rows, verb),
		Hint: "correct the rows and upload the list again, or set skip_invalid to send without them"}
	if u.list.Valid == 0 {
		err.Hint = "correct the rows and upload the list again"
	}
	for i := range u.first {
		one := &u.first[i]
		detail := &fanfare.Error{Code: fanfare.Invalid, Line: int(one.Row), Message: one.Detail, Hint: one.Hint}
		if one.Column != "" {
			detail.Pointer = inputerror.Pointer(one.Column)
		}
		err.Details = append(err.Details, detail)
	}
	return err
}
