package submission

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mailbox"
)

// An Outgoing message goes to other servers.
type Outgoing struct {
	ID         string // unique; a second message with the same ID is not sent
	Service    string
	Sender     fanfare.RowID // the subscriber to whom the mailbox belongs
	From       string        // address of the sender
	Recipients []string      // addresses in their normal form, each once
	Message    []byte
}

// A Relay sends messages to other servers.
type Relay interface {
	// Permits reports whether the owner of a mailbox with an address may send mail to other servers.
	Permits(service, from string) bool
	// Submit makes a delivery for each recipient. They are durable when it returns. refused has an error or nil for each recipient; if all
	// are refused, ref is zero.
	Submit(ctx context.Context, m *Outgoing) (ref fanfare.EventRef, refused []error, err error)
	// Enter says that a message is being accepted, until leave is called. An erasure waits for it.
	Enter() (leave func())
	// Known returns the event of an ID that Submit accepted.
	Known(service, id string) (ref fanfare.EventRef, ok bool)
	// Deliveries returns the deliveries of an event. It fails with NotFound if there are none (any more).
	Deliveries(ctx context.Context, ref fanfare.EventRef) ([]fanfare.Delivery, error)
}

// Options are what a Submitter needs.
type Options struct {
	Store      *mailbox.Store
	Recipients *recipients.Directory // the accounts of addresses
	Relay      Relay
	Name       string // host in the headers of reports and messages
	Hourly     int    // recipients of the messages of an account in an hour
	Clock      clock.Clock
	Logger     *slog.Logger
}

// A Submitter sends messages. It is safe for concurrent use.
type Submitter struct {
	o       Options
	Limiter *Limiter
	added   chan struct{} // has an element when Run must look at new records

	mu   sync.Mutex
	next map[mailbox.RecordPlace]schedule // of records with work
}

// A schedule says when Run looks at a record.
type schedule struct {
	at   time.Time
	wait time.Duration // before the look after that one
}

// New returns a Submitter.
func New(o Options) *Submitter {
	return &Submitter{o: o, Limiter: NewLimiter(o.Hourly), added: make(chan struct{}, 1), next: map[mailbox.RecordPlace]schedule{}}
}

// Name returns the host of the server.
func (s *Submitter) Name() string { return s.o.Name }

// Permits reports whether an account may send mail to other servers with an address, which is one of its own.
func (s *Submitter) Permits(a *mailbox.Account, from string) bool {
	return !a.Disabled && s.o.Relay.Permits(a.Service, from)
}

// Relayed sends the message of an account with the sender from, an address of the account, to the recipients of record that are outside, and stores record. Those that are refused at once are No
// in record, without a report. The record and the deliveries are durable when it returns. After an error, nothing was sent. A disabled account sends nothing.
func (s *Submitter) Relayed(ctx context.Context, a *mailbox.Account, from string, message []byte, record *Record) (id mailbox.RecordID, err error) {
	defer s.o.Relay.Enter()()
	var to []string
	for i := range record.Recipients {
		if one := &record.Recipients[i]; one.Outside {
			one.Delivered = Queued
			if !slices.Contains(to, one.Address) {
				to = append(to, one.Address)
			}
		}
	}
	record.SentAt = s.o.Clock.Now().Unix()
	record.Header = only(message, "from", "to", "subject", "date", "message-id")
	if len(to) == 0 {
		stored, err := s.o.Store.AddRecord(ctx, a.ID, mailbox.SubmissionRecord, record.works(), record.body(), 0)
		return stored.ID, err
	}
	for _, author := range Authors(message) { // an alias can have a domain that no channel signs
		if !s.Permits(a, author) {
			return 0, &fanfare.Error{Code: fanfare.Forbidden, Message: fmt.Sprintf("mail from %s may not be sent to other servers", author), Hint: "an administrator can permit the domain in the setting submission of a channel"}
		}
	}
	record.EventID = strings.ToLower(rand.Text())
	stored, err := s.o.Store.AddRecord(ctx, a.ID, mailbox.SubmissionRecord, true, record.body(), 0)
	if err != nil {
		return 0, err
	}
	ref, refused, err := s.o.Relay.Submit(ctx, &Outgoing{ID: record.EventID, Service: a.Service, Sender: a.ID, From: from, Recipients: to, Message: message})
	if err == nil && len(refused) != len(to) {
		err = errors.New("the relay returned no result for each recipient")
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		_ = s.o.Store.RemoveRecord(ctx, a.ID, mailbox.SubmissionRecord, stored.ID) // Run removes it if this fails
		return 0, err
	}
	if ref != (fanfare.EventRef{}) {
		record.Event = ref.String()
	} else {
		record.EventID = ""
	}
	for i := range record.Recipients {
		r := &record.Recipients[i]
		if at := slices.Index(to, r.Address); r.Outside && at >= 0 && refused[at] != nil {
			r.Delivered, r.Reply, r.Reported = No, "550 5.1.3 "+oneLine(refused[at].Error()), true
		}
	}
	_, err = s.o.Store.EditRecord(context.WithoutCancel(ctx), a.ID, mailbox.SubmissionRecord, stored.ID, record.mergeInto)
	if err != nil { // the deliveries exist, and Run finds them
		s.o.Logger.Warn("cannot store the deliveries of a submission", "account", a.ID, "error", err)
	}
	select {
	case s.added <- struct{}{}:
	default:
	}
	return stored.ID, nil
}

const (
	removeTimeout = 10 * time.Second
	// startTime is the time after which a submission without deliveries has been interrupted.
	startTime = 10 * time.Minute
	// firstWait and maxWait are the waits before Run looks at a record again; each one is twice as long as the one before.
	firstWait = 500 * time.Millisecond
	maxWait   = time.Minute
	// lookInterval is how often Run reads which records have work.
	lookInterval = 2 * time.Second
	recordsRead  = 500
)

// Run updates the records of submissions from their deliveries, and reports failures to the senders, until ctx ends.
func (s *Submitter) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.added:
		case <-timer.C:
		}
		if err := s.Look(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("cannot read the state of submissions; trying again", "error", err)
		}
		wait := lookInterval
		if s.hurries() {
			wait = firstWait
		}
		timer.Reset(wait)
	}
}

// hurries reports whether a record is due before the next usual look.
func (s *Submitter) hurries() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Clock.Now()
	for _, at := range s.next {
		if at.at.Sub(now) < lookInterval {
			return true
		}
	}
	return false
}

// Look looks at the records that are due once.
func (s *Submitter) Look(ctx context.Context) error {
	now := s.o.Clock.Now()
	seen := map[mailbox.RecordPlace]bool{}
	var last mailbox.RecordPlace
	for {
		list, err := s.o.Store.RecordsWithWork(ctx, mailbox.SubmissionRecord, last, recordsRead)
		if err != nil {
			return err
		}
		for _, place := range list {
			last, seen[place] = place, true
			if !s.isDue(place, now) {
				continue
			}
			if err := s.look(ctx, place); err != nil && ctx.Err() == nil {
				s.o.Logger.Warn("cannot update a submission; trying again later", "account", place.Account, "submission", place.ID, "error", err)
			}
		}
		if len(list) < recordsRead {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for place := range s.next {
		if !seen[place] {
			delete(s.next, place)
		}
	}
	return nil
}

// isDue reports whether a record must be looked at now, and plans the next look.
func (s *Submitter) isDue(place mailbox.RecordPlace, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.next[place]
	if known && now.Before(one.at) {
		return false
	}
	one.wait = min(maxWait, max(firstWait, 2*one.wait))
	one.at = now.Add(one.wait)
	s.next[place] = one
	return true
}

// look updates one record.
func (s *Submitter) look(ctx context.Context, place mailbox.RecordPlace) error {
	account, err := s.o.Store.Account(ctx, place.Account)
	if err != nil {
		return err
	}
	stored, err := s.o.Store.Record(ctx, place.Account, mailbox.SubmissionRecord, place.ID)
	if errors.Is(err, mailbox.ErrNoRecord) {
		return nil
	}
	if err != nil {
		return err
	}
	record, err := ParseRecord(&stored)
	if err != nil {
		return err
	}
	if record.Event == "" && record.EventID != "" {
		ref, known := s.o.Relay.Known(account.Service, record.EventID)
		switch {
		case known:
			record.Event = ref.String()
		case s.o.Clock.Now().Sub(record.sentAt()) < startTime:
			return nil
		default:
			return s.o.Store.RemoveRecord(ctx, place.Account, mailbox.SubmissionRecord, place.ID)
		}
	}
	if known, err := s.refresh(ctx, record); err != nil || !known {
		return err
	}
	if s.o.Clock.Now().Sub(record.sentAt()) >= startTime {
		record.interrupt()
	}
	if due := record.due(); len(due) > 0 {
		if err := s.report(ctx, &account, record, due); err != nil {
			return err
		}
	}
	_, err = s.o.Store.EditRecord(ctx, place.Account, mailbox.SubmissionRecord, place.ID, record.mergeInto)
	if errors.Is(err, mailbox.ErrNoRecord) {
		return nil
	}
	return err
}

// refresh sets the states of recipients. known is false if there are no deliveries yet.
func (s *Submitter) refresh(ctx context.Context, record *Record) (known bool, err error) {
	if record.Event == "" {
		return true, nil // all recipients have mailboxes here
	}
	ref, ok := fanfare.ParseEventRef(record.Event)
	if !ok {
		return false, fmt.Errorf("the submission names the event %q, which is not valid", record.Event)
	}
	deliveries, err := s.o.Relay.Deliveries(ctx, ref)
	switch {
	case err == nil:
		record.update(deliveries)
	case fanfare.CodeOf(err) != fanfare.NotFound:
		return false, err
	case s.o.Clock.Now().Sub(record.sentAt()) < forgottenAfter:
		return false, nil
	default: // the history was removed
		for i := range record.Recipients {
			if to := &record.Recipients[i]; to.Outside && to.Delivered == Queued {
				to.Delivered, to.Reported = Unknown, true
			}
		}
	}
	return true, nil
}

// forgottenAfter is the time after which an event without deliveries had its history removed.
const forgottenAfter = 24 * time.Hour

// report tells the sender which recipients a message failed for.
func (s *Submitter) report(ctx context.Context, a *mailbox.Account, record *Record, due []int) error {
	r := &Report{Name: s.o.Name, To: a.Address, EnvelopeID: record.EnvelopeID, Message: []byte(record.Header + "\r\n"), HeaderOnly: true}
	for _, i := range due {
		r.Results = append(r.Results, record.Recipients[i].result())
	}
	now := s.o.Clock.Now()
	err := s.o.Store.Deliver(ctx, mailbox.Delivery{Content: r.Text(now), Received: now, To: []mailbox.Owner{a.Owner}, Existing: true})[0]
	if err != nil && !errors.Is(err, mailbox.ErrOverQuota) && fanfare.CodeOf(err) != fanfare.Forbidden {
		return err
	}
	if err != nil {
		s.o.Logger.Warn("a delivery report is lost, because the mailbox of the sender does not accept it", "account", a.ID, "error", err)
	}
	for _, i := range due {
		record.Recipients[i].Reported = true
	}
	return nil
}
