package submission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Delivery is the state of a message for one recipient (RFC 8621, section 7).
type Delivery string

// The states of a recipient.
const (
	Queued  Delivery = "queued"  // the server tries to send the message
	Yes     Delivery = "yes"     // the message is in a mailbox of this server, or its arrival was confirmed
	No      Delivery = "no"      // it failed for good
	Unknown Delivery = "unknown" // another server accepted it
)

// A Recipient is a recipient of a submission.
type Recipient struct {
	Address   string   `json:"address"`
	Outside   bool     `json:"outside,omitempty"` // another server has the mailbox
	Delivered Delivery `json:"delivered"`
	Reply     string   `json:"reply"` // of the last attempt, such as 250 2.6.0 ok

	Never    bool   `json:"never,omitempty"`    // the sender wants no report of a failure (NOTIFY of RFC 3461)
	Success  bool   `json:"success,omitempty"`  // the sender wants one of a success
	Original string `json:"original,omitempty"` // ORCPT
	Reported bool   `json:"reported,omitempty"` // the sender has the report, if there is one
}

// final reports whether the server does nothing more for the recipient.
func (r *Recipient) final() bool { return r.Delivered != Queued && r.Reported }

// A Record is the stored state of a submission. Its JSON is the body of a mailbox.Record.
type Record struct {
	EventID    string          `json:"event_id,omitempty"` // of the event with its deliveries; "": there are none
	Event      string          `json:"event,omitempty"`    // the reference of the event; "": it is not known to exist yet
	SentAt     int64           `json:"sent_at"`            // Unix seconds
	Recipients []Recipient     `json:"recipients"`
	EnvelopeID string          `json:"envelope_id,omitempty"`
	Header     string          `json:"header,omitempty"` // fields of the message, for reports
	Client     json.RawMessage `json:"client,omitempty"` // what JMAP keeps; absent: the message came by SMTP
}

// ParseRecord reads the body of a mailbox.Record.
func ParseRecord(r *mailbox.Record) (*Record, error) {
	var record Record
	if err := json.Unmarshal([]byte(r.Body), &record); err != nil {
		return nil, fmt.Errorf("submission %d of account %d: %w", r.ID, r.Account, err)
	}
	return &record, nil
}

func (r *Record) body() string {
	text, _ := json.Marshal(r) // plain values: cannot fail
	return string(text)
}

// works reports whether the server has something to do.
func (r *Record) works() bool {
	for i := range r.Recipients {
		if !r.Recipients[i].final() {
			return true
		}
	}
	return false
}

// update sets the states of recipients from the deliveries.
func (r *Record) update(deliveries []fanfare.Delivery) {
	states := make(map[string]*fanfare.Delivery, len(deliveries))
	for i := range deliveries {
		states[deliveries[i].Address] = &deliveries[i]
	}
	for i := range r.Recipients {
		to := &r.Recipients[i]
		d := states[to.Address]
		if !to.Outside || d == nil {
			continue
		}
		if n := len(d.Attempts); n > 0 {
			last := &d.Attempts[n-1]
			to.Reply = oneLine(last.Text)
			if last.Code > 0 {
				to.Reply = fmt.Sprintf("%d %s", last.Code, to.Reply)
			}
		}
		switch d.State {
		case fanfare.Accepted.String():
			to.Delivered = Unknown
		case fanfare.Delivered.String():
			to.Delivered = Yes
		case fanfare.Failed.String(), fanfare.Expired.String(), fanfare.Cancelled.String(), fanfare.Suppressed.String():
			to.Delivered = No
		}
	}
}

// interrupt sets the state of mailboxes of this server that have no result: the server was killed before it delivered the message.
func (r *Record) interrupt() {
	for i := range r.Recipients {
		if to := &r.Recipients[i]; !to.Outside && to.Delivered == Queued {
			to.Delivered, to.Reply = No, "450 4.3.2 the server was interrupted"
		}
	}
}

// due returns the recipients about whom the sender must get a report, and marks those that need none as done.
func (r *Record) due() (due []int) {
	for i := range r.Recipients {
		to := &r.Recipients[i]
		if to.Delivered == Queued || to.Reported {
			continue
		}
		if to.Delivered == No && !to.Never || to.Delivered != No && to.Success {
			due = append(due, i)
			continue
		}
		to.Reported = true
	}
	return due
}

// mergeInto makes the changes of r to the stored record. It keeps what another goroutine has stored about a recipient meanwhile.
func (r *Record) mergeInto(stored *mailbox.Record) error {
	now, err := ParseRecord(stored)
	if err != nil {
		return err
	}
	now.EventID, now.Event = r.EventID, cmp.Or(r.Event, now.Event)
	for i := range min(len(r.Recipients), len(now.Recipients)) {
		if to := &now.Recipients[i]; to.Delivered == Queued || !to.Reported && r.Recipients[i].Reported {
			*to = r.Recipients[i]
		}
	}
	stored.Body, stored.Work = now.body(), now.works()
	stored.Removed = !stored.Work && now.Client == nil
	return nil
}

// result describes what happened for a report.
func (r *Recipient) result() Result {
	one := Result{Address: r.Address, Original: r.Original, Failed: r.Delivered == No, Relayed: r.Delivered == Unknown, Text: r.Reply}
	var code int
	if n, _ := fmt.Sscanf(r.Reply, "%d ", &code); n == 1 && code >= 400 && code < 600 {
		one.Code, one.Text = code, r.Reply[4:]
		var class, subject, detail int
		if n, _ := fmt.Sscanf(one.Text, "%d.%d.%d ", &class, &subject, &detail); n == 3 && class < 10 && subject < 1000 && detail < 1000 {
			one.Enhanced = fmt.Sprintf("%d.%d.%d", class, subject, detail)
			one.Text = one.Text[min(len(one.Text), len(one.Enhanced)+1):]
		}
	}
	return one
}

// sentAt is the time of the submission.
func (r *Record) sentAt() time.Time { return time.Unix(r.SentAt, 0).UTC() }

// Hide makes a record invisible for the client, as if it were destroyed. It stays until the server has nothing to do for it any more.
func Hide(r *mailbox.Record) error {
	record, err := ParseRecord(r)
	if err != nil {
		return err
	}
	record.Client = nil
	r.Body, r.Removed = record.body(), !r.Work
	return nil
}
