package sends

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/store/control"
)

// Store stores sends; *control.Store has these methods.
type Store interface {
	Sends(ctx context.Context) ([]control.SendRecord, error)
	PutSend(ctx context.Context, r control.SendRecord, part *control.SendPart) error
	ReplaceSendRows(ctx context.Context, r control.SendRecord, uploads ...int64) error
	DeleteUpload(ctx context.Context, send string, upload int64) error
	DeleteSendRows(ctx context.Context, send string, upload int64) error
	DeleteSend(ctx context.Context, id string, uploads ...int64) error
	AddSendRows(ctx context.Context, r *control.SendRows) error
	EraseSendRows(ctx context.Context, r *control.SendRows) error
	SendChunks(ctx context.Context, send string) ([]control.SendRows, error)
	SendRows(ctx context.Context, send string, upload, chunk int64) ([]byte, error)
	AddSendErrors(ctx context.Context, e *control.SendErrors) error
	EraseSendErrors(ctx context.Context, e *control.SendErrors) error
	SendErrors(ctx context.Context, send string, upload, page int64) ([]byte, error)
	SendErrorPages(ctx context.Context, send string) ([]control.SendErrors, error)
	SendParts(ctx context.Context, send string) ([]control.SendPart, error)
	SendOutcome(ctx context.Context, send string, part int64) ([]byte, error)
}

// Messages check recipients and send parts; *messages.Messages has these methods.
type Messages interface {
	NewChecker(ctx context.Context, service string, request *wire.MessageRequest) (*messages.Checker, *wire.MessageRequest, error)
	SendPart(ctx context.Context, service string, p *messages.Part) (messages.PartOutcome, error)
	Await(ref fanfare.EventRef) (done <-chan struct{}, forget func())
}

// Traces know the state of broadcasts and their deliveries; *report.Traces has these methods.
type Traces interface {
	Broadcast(ctx context.Context, ref fanfare.EventRef) (fanfare.Broadcast, error)
	EachOfEvent(ctx context.Context, ref fanfare.EventRef, visit func(subscriber fanfare.RowID, d *fanfare.Delivery) error) error
}

// Switches pause and cancel broadcasts; *control.Switches has these methods.
type Switches interface {
	Pause(ctx context.Context, scope fanfare.Scope, reason string) error
	Resume(ctx context.Context, scope fanfare.Scope, reason string) error
	Cancel(ctx context.Context, scope fanfare.Scope, reason string) error
}

// Options are the parts that Sends work with.
type Options struct {
	Store    Store
	Messages Messages
	Traces   Traces
	Switches Switches
	// NeedsApproval reports whether the sends of a service need the approval of a second person.
	NeedsApproval func(service string) bool
	Channel       func(service, name string) (*catalog.Channel, bool)
	Estimate      func(channel uint16, messages int) wire.DryRunChannel
	// Restored is set at the first start after a restore from a backup, after which parts may have been sent that the store does not know.
	Restored  bool
	Floor     func() error                        // returns an error while the disk is too full
	Accepting interface{ Enter() (leave func()) } // an erasure waits for messages that are being accepted
	Record    time.Duration                       // how long events are stored at least
	Keep      time.Duration                       // how long a send is stored after its end
	Clock     clock.Clock
	Logger    *slog.Logger
}

// Limits of sends.
const (
	maxSends     = 10_000 // of all services
	maxOpenSends = 1_000  // of a service, that have not ended
	maxAhead     = 366 * 24 * time.Hour
	maxPast      = time.Minute // by which the time of a send may be before now
	maxUploads   = 2           // at the same time
)

// Sends are all sends of the server. They are safe for concurrent use.
type Sends struct {
	Options
	uploads chan struct{} // one slot for each upload, or repeated check, that is in progress
	wake    chan struct{}

	mu      sync.Mutex
	byID    map[string]*entry
	erasing []*upload // uploads that are in progress
	drivers sync.WaitGroup
}

// An entry is a send in memory.
type entry struct {
	id, service string // as in send, but they never change and need no lock

	uploading sync.Mutex // held during an upload or a repeated check

	mu         sync.Mutex
	send       send
	nextUpload int64
	driving    bool          // a goroutine sends, pauses or cancels it
	changed    chan struct{} // closed and replaced when the state changes
	gone       bool          // it was deleted
	progress   cachedProgress
}

// A send is a send as it is stored.
type send struct {
	ID      string `json:"-"`
	Service string `json:"service"`
	wire.SendRequest

	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`

	List    *list `json:"list,omitempty"`
	Refused *list `json:"refused,omitempty"` // the last upload, if it was refused

	Digest string `json:"digest,omitempty"`

	CreatedAt   time.Time `json:"created_at"`
	ChangedAt   time.Time `json:"changed_at"`
	Authors     []person  `json:"authors"` // the first one created it
	SubmittedAt time.Time `json:"submitted_at,omitzero"`
	SubmittedBy string    `json:"submitted_by,omitempty"`
	ApprovedAt  time.Time `json:"approved_at,omitzero"`
	ApprovedBy  string    `json:"approved_by,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`

	Sent        int64 `json:"sent,omitempty"`         // rows whose messages were accepted
	RefusedRows int64 `json:"refused_rows,omitempty"` // rows that were valid in the list and were refused when they were to be sent

	Next    int64     `json:"next,omitempty"`    // part that is sent next
	Begun   time.Time `json:"begun,omitzero"`    // when sending it began; zero: it did not
	Settled bool      `json:"settled,omitempty"` // the pause, its end or the cancellation has reached the broadcasts

	Uncertain bool `json:"uncertain,omitempty"` // it is paused because the part that is sent next may have been sent before
}

// A list describes an upload.
type list struct {
	wire.SendList
	Upload    int64  `json:"upload"`
	Chunks    int64  `json:"chunks"`
	Digest    string `json:"digest"`  // of the valid rows
	CheckedAs string `json:"checked"` // what the rows were checked with
}

// A person is a key or a person, by the texts that identify them.
type person struct {
	Title      string   `json:"title"`
	Identities []string `json:"identities"`
}

// Open reads all sends, and deletes rows that an earlier run has left behind.
func Open(ctx context.Context, o Options) (*Sends, error) {
	s := &Sends{Options: o, uploads: make(chan struct{}, maxUploads), wake: make(chan struct{}, 1), byID: map[string]*entry{}}
	records, err := o.Store.Sends(ctx)
	if err != nil {
		return nil, err
	}
	for i := range records {
		e := &entry{changed: make(chan struct{})}
		if err := json.Unmarshal([]byte(records[i].Body), &e.send); err != nil {
			return nil, fmt.Errorf("send %s: %w", records[i].ID, err)
		}
		e.send.ID = records[i].ID
		if err := s.tidy(ctx, e); err != nil {
			return nil, err
		}
		e.id, e.service = e.send.ID, e.send.Service
		s.byID[e.id] = e
		if o.Restored && e.send.pauseRestored(o.Clock.Now().UTC()) {
			record, err := e.send.record()
			if err == nil {
				err = o.Store.PutSend(ctx, record, nil)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// pauseRestored pauses a send that may have been sent after the backup, and reports whether it was one.
func (x *send) pauseRestored(now time.Time) bool {
	due := x.State == wire.SendScheduled && !x.SendAt.After(now)
	if x.State != wire.SendSending && !due {
		return false
	}
	if due {
		x.StartedAt = now
	}
	x.State, x.Settled = wire.SendPaused, false
	x.Reason = "the server was restored from a backup, and parts of the send may have been sent after it: find out, and then resume the send or cancel it"
	return true
}

// tidy deletes the rows of incomplete uploads.
func (s *Sends) tidy(ctx context.Context, e *entry) error {
	chunks, err := s.Store.SendChunks(ctx, e.send.ID)
	if err != nil {
		return err
	}
	pages, err := s.Store.SendErrorPages(ctx, e.send.ID)
	if err != nil {
		return err
	}
	seen := map[int64]bool{}
	for i := range chunks {
		seen[chunks[i].Upload] = true
	}
	for i := range pages {
		seen[pages[i].Upload] = true
	}
	kept := e.send.uploads()
	for _, upload := range kept {
		e.nextUpload = max(e.nextUpload, upload+1)
	}
	for upload := range seen {
		e.nextUpload = max(e.nextUpload, upload+1)
		if !slices.Contains(kept, upload) {
			if err := s.Store.DeleteUpload(ctx, e.send.ID, upload); err != nil {
				return err
			}
		}
	}
	return nil
}

// uploads returns the numbers of the stored uploads.
func (x *send) uploads() (numbers []int64) {
	for _, l := range []*list{x.List, x.Refused} {
		if l != nil {
			numbers = append(numbers, l.Upload)
		}
	}
	return numbers
}

// record returns the stored form.
func (x *send) record() (control.SendRecord, error) {
	body, err := json.Marshal(x)
	return control.SendRecord{ID: x.ID, Body: string(body)}, err
}

// find returns a send of a service, or of any with "".
func (s *Sends) find(service, id string) (*entry, error) {
	s.mu.Lock()
	e := s.byID[id]
	s.mu.Unlock()
	if e == nil || service != "" && e.service != service {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no send %q", id), Hint: "list the sends with fanfare sends list or GET /v1/sends; ended ones are deleted after some time"}
	}
	return e, nil
}

// titleOf returns who somebody is, for people.
func titleOf(p catalog.Principal) string {
	switch {
	case p.KeyID == "":
		return cmp.Or(p.Name, p.Owner, p.Subject)
	case p.Name == "":
		return p.KeyID
	}
	return p.KeyID + " (" + p.Name + ")"
}

func personOf(p catalog.Principal) person { return person{titleOf(p), p.Identities()} }

// addAuthor adds an author unless the same person is one.
func (x *send) addAuthor(p catalog.Principal) {
	is := personOf(p)
	for _, author := range x.Authors {
		if slices.Equal(author.Identities, is.Identities) {
			return
		}
	}
	x.Authors = append(slices.Clip(x.Authors), is)
}

// Create creates a draft.
func (s *Sends) Create(ctx context.Context, by catalog.Principal, service string, in *wire.SendRequest) (wire.Send, error) {
	now := s.Clock.Now().UTC()
	e := &entry{changed: make(chan struct{}), send: send{ID: "snd-" + strings.ToLower(rand.Text()[:12]), Service: service, SendRequest: *in, State: wire.SendDraft, CreatedAt: now, ChangedAt: now}}
	e.id, e.service = e.send.ID, service
	e.send.addAuthor(by)
	if err := s.Floor(); err != nil {
		return wire.Send{}, err
	}
	if err := s.check(ctx, &e.send); err != nil {
		return wire.Send{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := s.add(e); err != nil {
		return wire.Send{}, err
	}
	record, err := e.send.record()
	if err == nil {
		err = s.Store.PutSend(ctx, record, nil)
	}
	if err != nil {
		s.remove(e)
		return wire.Send{}, control.UserError(err, "the send could not be stored")
	}
	return s.show(ctx, by, e), nil
}

func (s *Sends) add(e *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= maxSends {
		return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the server has %d sends, the maximum", maxSends), Hint: "delete drafts and ended sends that nobody needs"}
	}
	s.byID[e.id] = e
	open := 0
	for _, other := range s.byID {
		if other.service == e.service {
			open++
		}
	}
	if open > maxOpenSends {
		delete(s.byID, e.id)
		return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the service has %d sends, the maximum", maxOpenSends), Hint: "delete drafts and ended sends that nobody needs"}
	}
	return nil
}

func (s *Sends) remove(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, e.id)
	e.gone = true
}

// check checks the settings of a send.
func (s *Sends) check(ctx context.Context, x *send) error {
	wrong := func(pointer, hint, message string) error {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}
	}
	line := func(text string, most int) bool {
		return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
	}
	now := s.Clock.Now()
	data := bytes.TrimLeft(x.Data, " \t\r\n")
	switch {
	case !line(x.Name, wire.MaxSendNameBytes):
		return wrong("/name", fmt.Sprintf("use one line of at most %d bytes", wire.MaxSendNameBytes), "the name is not valid")
	case !line(x.Reference, wire.MaxReferenceBytes):
		return wrong("/reference", fmt.Sprintf("use one line of at most %d bytes", wire.MaxReferenceBytes), "the reference is not valid")
	case x.Channel == "":
		return wrong("/channel", "set it to the name of a channel of the service", "channel is missing")
	case x.Template == "":
		return wrong("/template", "set it to the name of a template of the service", "template is missing")
	case len(data) > 0 && data[0] != '{':
		return wrong("/data", "", "data must be an object")
	case len(x.Data) > wire.MaxSendDataBytes:
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/data", Message: fmt.Sprintf("the data has %d bytes; at most %d are allowed", len(x.Data), wire.MaxSendDataBytes), Hint: "put long texts into the template"}
	case !x.SendAt.IsZero() && x.SendAt.Before(now.Add(-maxPast)):
		return wrong("/send_at", "set a later time, or omit it to send as soon as the send is approved", "is in the past")
	case x.SendAt.Sub(now) > maxAhead:
		return wrong("/send_at", "set an earlier time", "is more than 366 days ahead")
	}
	if _, err := fanfare.ParseLane(x.Lane); err != nil {
		return fanfare.Below("/lane", err)
	}
	if _, _, err := s.Messages.NewChecker(ctx, x.Service, x.request()); err != nil && !aboutData(err) {
		return err
	}
	return nil
}

// aboutData reports whether an error is about data that the send still lacks. The check of its list tells it.
func aboutData(err error) bool {
	e, ok := err.(*fanfare.Error) //nolint:errorlint // of the checker itself
	return ok && e.Pointer == "/data"
}

// request returns the message that all recipients get.
func (x *send) request() *wire.MessageRequest {
	return &wire.MessageRequest{Channel: x.Channel, Template: x.Template, Data: x.Data, Lane: x.Lane, Reference: cmp.Or(x.Reference, x.ID)}
}

// change changes a send under its lock and stores it. edit gets a copy.
func (s *Sends) change(ctx context.Context, e *entry, edit func(x *send) error) error {
	if e.gone {
		return &fanfare.Error{Code: fanfare.NotFound, Message: "the send was deleted"}
	}
	x := e.send
	if err := edit(&x); err != nil {
		return err
	}
	record, err := x.record()
	if err == nil {
		err = s.Store.PutSend(ctx, record, nil)
	}
	if err != nil {
		return control.UserError(err, "the send could not be stored")
	}
	e.set(x)
	return nil
}

// set replaces the send in memory and wakes who waits for its state.
func (e *entry) set(x send) {
	e.send = x
	close(e.changed)
	e.changed = make(chan struct{})
}

// reopen makes a send that was not begun a draft again, and removes what people decided about it.
func (x *send) reopen(by catalog.Principal, now time.Time) error {
	switch x.State {
	case wire.SendDraft, wire.SendSubmitted, wire.SendScheduled:
	default:
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the send cannot be changed: it is " + x.State, Hint: "create another send"}
	}
	x.State, x.Reason, x.Digest = wire.SendDraft, "", ""
	x.SubmittedAt, x.SubmittedBy, x.ApprovedAt, x.ApprovedBy = time.Time{}, "", time.Time{}, ""
	x.ChangedAt = now.UTC()
	x.addAuthor(by)
	return nil
}

// Change changes the settings of a send that was not begun, and makes it a draft.
func (s *Sends) Change(ctx context.Context, by catalog.Principal, service, id string, edit func(*wire.SendRequest) error) (wire.Send, error) {
	e, err := s.find(service, id)
	if err != nil {
		return wire.Send{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	err = s.change(ctx, e, func(x *send) error {
		if err := x.reopen(by, s.Clock.Now()); err != nil {
			return err
		}
		if err := edit(&x.SendRequest); err != nil {
			return err
		}
		return s.check(ctx, x)
	})
	return s.show(ctx, by, e), err
}

// Get returns a send.
func (s *Sends) Get(ctx context.Context, by catalog.Principal, service, id string) (wire.Send, error) {
	e, err := s.find(service, id)
	if err != nil {
		return wire.Send{}, err
	}
	e.mu.Lock()
	shown := s.show(ctx, by, e)
	x := e.send
	e.mu.Unlock()
	shown.Progress, err = s.progressOf(ctx, e, &x)
	return shown, err
}

// List lists the sends of a service, or of all with "", in a state or in any with "", the latest first, after a key. next is the key of the
// last one, "" at the end.
func (s *Sends) List(ctx context.Context, by catalog.Principal, service, state, after string, limit int) (page []wire.Send, next string) {
	type item struct {
		key   string
		entry *entry
	}
	var all []item
	s.mu.Lock()
	for _, e := range s.byID {
		if service == "" || e.service == service {
			all = append(all, item{entry: e})
		}
	}
	s.mu.Unlock()
	for i := range all {
		e := all[i].entry
		e.mu.Lock()
		if state == "" || e.send.State == state {
			all[i].key = e.send.CreatedAt.UTC().Format("20060102150405.000000000") + e.send.ID
		}
		e.mu.Unlock()
	}
	all = slices.DeleteFunc(all, func(i item) bool { return i.key == "" || after != "" && i.key >= after })
	slices.SortFunc(all, func(a, b item) int { return cmp.Compare(b.key, a.key) })
	page = []wire.Send{}
	for i := range all[:min(len(all), limit)] {
		e := all[i].entry
		e.mu.Lock()
		page = append(page, s.show(ctx, by, e))
		e.mu.Unlock()
	}
	if len(all) > limit {
		next = all[limit-1].key
	}
	return page, next
}

// show returns a send in the form of the API, without its progress. The caller has the lock of e.
func (s *Sends) show(_ context.Context, by catalog.Principal, e *entry) wire.Send {
	x := &e.send
	shown := wire.Send{ID: x.ID, Service: x.Service, Name: x.Name, Channel: x.Channel, Template: x.Template, Data: x.Data, SendAt: x.SendAt, Lane: cmp.Or(x.Lane, fanfare.Bulk.String()),
		Reference: x.Reference, SkipInvalid: x.SkipInvalid, State: x.State, Reason: x.Reason, Digest: x.Digest, CreatedAt: x.CreatedAt, ChangedAt: x.ChangedAt,
		SubmittedAt: x.SubmittedAt, SubmittedBy: x.SubmittedBy, ApprovedAt: x.ApprovedAt, ApprovedBy: x.ApprovedBy, StartedAt: x.StartedAt, EndedAt: x.EndedAt}
	for i := range x.Authors {
		shown.Authors = append(shown.Authors, x.Authors[i].Title)
	}
	shown.CreatedBy = shown.Authors[0]
	if x.List != nil {
		uploaded := x.List.SendList
		shown.Recipients = &uploaded
		if c, ok := s.Channel(x.Service, x.Channel); ok {
			run := s.Estimate(c.Number, int(x.List.Valid))
			shown.Estimate = &run
		}
	}
	if x.Refused != nil {
		refused := x.Refused.SendList
		shown.Refused = &refused
	}
	if x.State == wire.SendSubmitted {
		if err := x.mayApprove(by); err != nil {
			shown.CannotApprove = err.Message
		}
	}
	if !x.EndedAt.IsZero() {
		shown.DeletesAt = x.EndedAt.Add(s.Keep).Truncate(time.Second)
	}
	return shown
}

// Delete deletes a send that is not being sent.
func (s *Sends) Delete(ctx context.Context, service, id string) error {
	e, err := s.find(service, id)
	if err != nil {
		return err
	}
	if !e.uploading.TryLock() {
		return busy()
	}
	defer e.uploading.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.gone:
		return nil
	case e.send.State == wire.SendScheduled, e.send.State == wire.SendSending, e.send.State == wire.SendPaused, e.driving:
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the send cannot be deleted: it is " + e.send.State, Hint: "cancel it first"}
	}
	return s.delete(ctx, e)
}

// delete deletes a send. The caller has the lock of e.
func (s *Sends) delete(ctx context.Context, e *entry) error {
	if err := s.Store.DeleteSend(ctx, e.send.ID, e.send.uploads()...); err != nil {
		return control.UserError(err, "the send could not be deleted")
	}
	s.remove(e)
	return nil
}

func busy() error {
	return &fanfare.Error{Code: fanfare.Conflict, Message: "a list of the send is being uploaded or checked", Hint: "try again when it is complete"}
}

// digest returns the digest of everything that is approved.
func (x *send) digest() (string, error) {
	var data bytes.Buffer
	if len(x.Data) > 0 {
		if err := json.Compact(&data, x.Data); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal([]any{x.ID, x.Service, x.Name, x.Channel, x.Template, data.String(), x.SendAt.UTC(), x.Lane, x.Reference, x.SkipInvalid, x.List.Digest, x.List.Valid, x.List.Rows})
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), err
}
