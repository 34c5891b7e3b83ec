package notify

import (
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/reply"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Statuses of notifications.
const (
	statusCreated   = "created"
	statusSending   = "sending"
	statusDelivered = "delivered"
	statusPermanent = "permanent-failure"
	statusTemporary = "temporary-failure"
	statusTechnical = "technical-failure"
)

// receiptPatience is how long a notification waits for a receipt.
const receiptPatience = 72 * time.Hour

// A Status is what clients see of the state of a message.
type Status struct {
	Name        string
	SentAt      time.Time // when the next hop accepted it; zero: not yet
	CompletedAt time.Time // when the status became final; zero: it is not final
}

// StatusOf returns the status of a message of a service. The channel may be nil if it does not exist any more.
func StatusOf(of *catalog.NotifySettings, channel *catalog.Channel, m *wire.Message, rules *reply.Rules, now time.Time) (s Status) {
	s.Name = statusCreated
	state := m.State
	var last *fanfare.Attempt
	if m.Delivery != nil {
		state = m.Delivery.State
		for i := range m.Delivery.Attempts {
			last = &m.Delivery.Attempts[i]
			if s.SentAt.IsZero() && (last.State == fanfare.Accepted || last.State == fanfare.Delivered) {
				s.SentAt = last.At
			}
		}
	}
	final := func(name string) {
		s.Name, s.CompletedAt = name, m.Stages.Last
		if last != nil {
			s.CompletedAt = last.At
		}
	}
	switch state {
	case fanfare.Deferred.String():
		s.Name = statusSending
	case fanfare.Accepted.String():
		s.Name = statusSending
		if last == nil {
			break
		}
		if wait, reports := of.DeliveredAfter(); reports && !now.Before(last.At.Add(wait)) {
			s.Name, s.CompletedAt = statusDelivered, last.At.Add(wait)
		} else if channel != nil && channel.Receipts != (catalog.Receipts{}) && now.Sub(last.At) > receiptPatience {
			s.Name, s.CompletedAt = statusTemporary, last.At.Add(receiptPatience)
		}
	case fanfare.Delivered.String():
		final(statusDelivered)
	case fanfare.Failed.String():
		final(failure(channel, last, m.Delivery, rules))
	case fanfare.Suppressed.String():
		final(statusPermanent)
	case fanfare.Expired.String():
		final(statusTemporary)
	case fanfare.Cancelled.String():
		final(statusTechnical)
	}
	return s
}

// failure returns the status of a failed message.
func failure(channel *catalog.Channel, last *fanfare.Attempt, d *fanfare.Delivery, rules *reply.Rules) string {
	if last == nil || last.Code == 0 && (last.Relay == "" || channel == nil) {
		return statusTechnical // the message did not reach a next hop
	}
	name, destination := "smtp", ""
	if channel != nil && channel.Driver != catalog.DriverSimulate {
		name = channel.Driver
	}
	if at := strings.LastIndexByte(d.Address, '@'); at >= 0 {
		destination = strings.ToLower(d.Address[at+1:])
	}
	outcome := driver.Outcome{Verdict: reply.VerdictOf(name, last.Code), Code: last.Code, Text: last.Text, Relay: last.Relay, At: last.At}
	switch class := rules.Read(name, destination, &outcome).Class; {
	case class == fanfare.ClassInvalid:
		return statusPermanent
	case last.Code == 0:
		return statusTechnical
	}
	return statusTemporary
}
