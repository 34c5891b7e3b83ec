package messages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
)

const (
	submissionSource = "/submissions" // source of the event
	submittedName    = "message.eml"
	submittedType    = "message/rfc822"
)

// Submissions send the messages of the owners of mailboxes; they are the submission.Relay of the server.
type Submissions struct{ *Messages }

// Permits reports whether the owner of a mailbox may send mail to anybody: a channel of the service permits the domain of the address.
func (m Submissions) Permits(service, from string) bool {
	return m.submissionChannel(service, from) != nil
}

// submissionChannel returns the first channel, by name, that permits the domain of an address, or nil.
func (m Submissions) submissionChannel(service, from string) *catalog.Channel {
	svc, err := m.options.Registry.Snapshot().Service(service)
	if err != nil {
		return nil
	}
	domain := strings.ToLower(from[strings.LastIndexByte(from, '@')+1:])
	for _, name := range slices.Sorted(maps.Keys(svc.Channels)) {
		if c := svc.Channels[name]; slices.Contains(c.Submission, domain) {
			return c
		}
	}
	return nil
}

// Enter lets an erasure wait for the message that is being accepted.
func (m Submissions) Enter() (leave func()) { return m.options.Accepting.Enter() }

// Submit makes a delivery for each recipient, with the retries and limits of the channel. It is durable when Submit returns. refused has an
// error or nil for each recipient; if all are refused, nothing is sent and ref is zero.
func (m Submissions) Submit(ctx context.Context, s *submission.Outgoing) (ref fanfare.EventRef, refused []error, err error) {
	channel := m.submissionChannel(s.Service, s.From)
	if channel == nil {
		return ref, nil, &fanfare.Error{Code: fanfare.Forbidden, Message: fmt.Sprintf("the owner of %s may not send mail to other servers", s.From), Hint: "an administrator can permit the domain in the setting submission of a channel"}
	}
	if err := m.options.Disk.Check(); err != nil {
		return ref, nil, err
	}
	defer m.options.Accepting.Enter()()
	all := make([]people.DirectRecipient, len(s.Recipients))
	for i, to := range s.Recipients {
		all[i].Address = to
	}
	if err := m.options.Registry.FindDirectRecipients(ctx, s.Service, channel, all); err != nil {
		return ref, nil, err
	}
	if err := m.options.Registry.CreateDirectRecipients(ctx, s.Service, channel, all); err != nil {
		return ref, nil, err
	}
	file := fanfare.File{Name: submittedName, Type: submittedType, Size: len(s.Message), Sum: fanfare.SumOf(s.Message)}
	posted := fanfare.AcceptedEvent{
		Service: s.Service, Lane: fanfare.Normal, ReceivedAt: m.options.Clock.Now(),
		Event:  fanfare.Event{ID: s.ID, Source: submissionSource, Type: messageType},
		Direct: &fanfare.Direct{Channel: channel.Number, List: true, Asked: true, Submitted: &fanfare.Submitted{Sender: s.Sender}, Files: []fanfare.File{file}},
	}
	refused = make([]error, len(all))
	for i := range all {
		if refused[i] = all[i].Err; refused[i] == nil {
			posted.Direct.Recipients = append(posted.Direct.Recipients, fanfare.Recipient{Subscriber: all[i].Place})
		}
	}
	order := func(a, b fanfare.Recipient) int { return cmp.Compare(a.Subscriber, b.Subscriber) }
	slices.SortFunc(posted.Direct.Recipients, order)
	posted.Direct.Recipients = slices.CompactFunc(posted.Direct.Recipients, func(a, b fanfare.Recipient) bool { return a.Subscriber == b.Subscriber })
	if len(posted.Direct.Recipients) == 0 {
		return ref, refused, nil
	}
	if err := m.options.Store.KeepFiles(ctx, fanfare.DayOf(posted.ReceivedAt), s.Message); err != nil {
		return ref, nil, err
	}
	list := []fanfare.AcceptedEvent{posted}
	var results []ingest.Result
	if results, err = m.options.Collector.Post(ctx, list); err == nil {
		ref, err = results[0].Ref, results[0].Err
	}
	return ref, refused, err
}

// Known returns the event of a submission that was accepted before.
func (m Submissions) Known(service, id string) (fanfare.EventRef, bool) {
	return m.options.Collector.Known(&fanfare.AcceptedEvent{Service: service, Event: fanfare.Event{ID: id, Source: submissionSource}})
}

// Deliveries returns the deliveries of a submission.
func (m Submissions) Deliveries(ctx context.Context, ref fanfare.EventRef) (list []fanfare.Delivery, err error) {
	for cursor := ""; ; {
		var some []fanfare.Delivery
		if some, cursor, err = m.options.Traces.Deliveries(ctx, ref, cursor, maxDeliveries); err != nil {
			return nil, err
		}
		if list = append(list, some...); cursor == "" {
			return list, nil
		}
	}
}

// maxDeliveries are read together.
const maxDeliveries = 100
