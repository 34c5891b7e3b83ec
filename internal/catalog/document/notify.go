package document

import (
	"time"

	"github.com/google/uuid"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/people/addresskind"
)

// Limits of the settings for clients of GOV.UK Notify.
const (
	maxNotifyPeople  = 1000
	maxNotifySenders = 200
	maxSenderBytes   = 254
	maxContactBytes  = 512
)

// notify reads the settings for clients of GOV.UK Notify; null removes them.
func (n node) notify() *catalog.NotifySettings {
	s := &catalog.NotifySettings{}
	if n.resolved() == nil {
		return s
	}
	n.fields(fieldReaders{
		"id":         func(v node) { s.ID = v.uuid() },
		"email":      func(v node) { s.Email = v.name() },
		"sms":        func(v node) { s.SMS = v.name() },
		"trial":      func(v node) { s.Trial = v.yes() },
		"team":       func(v node) { s.Team = v.recipients() },
		"guest_list": func(v node) { s.GuestList = v.recipients() },
		"contact":    func(v node) { s.Contact = v.label(maxContactBytes) },
		"rate": func(v node) {
			if s.Rate = v.rate(); s.Rate == (catalog.Rate{}) && v.text() == "unlimited" {
				v.fault("write it as 30/s, 1000/min or 5000/h", "the rate of clients of GOV.UK Notify is always limited")
			}
		},
		"reply_to":    func(v node) { s.ReplyTo = v.senders(func(v node) string { return v.address() }) },
		"sms_senders": func(v node) { s.Senders = v.senders(func(v node) string { return v.label(maxSenderBytes) }) },
		"sms_prefix":  func(v node) { s.SMSPrefix = v.yes() },
		"daily": func(v node) {
			v.fields(fieldReaders{
				"email": func(v node) { s.Daily.Email = v.number(1, maxQuota) },
				"sms":   func(v node) { s.Daily.SMS = v.number(1, maxQuota) },
			})
		},
		"callbacks": func(v node) {
			v.fields(fieldReaders{"delivery": func(v node) { s.Callbacks.Delivery = v.name() }})
		},
		"report_accepted_as_delivered": func(v node) {
			s.ReportAccepted = v.text()
			if problem := catalog.CheckReportAccepted(s.ReportAccepted); problem != "" {
				v.fault("such as after 1h", "%s", problem)
			}
			if s.ReportAccepted == catalog.NotifyNever {
				s.ReportAccepted = ""
			}
		},
	})
	if s.Email+s.SMS == "" {
		n.fault("set email or sms to the name of a channel, or set notify to null", "clients of GOV.UK Notify need a channel")
	}
	return s
}

// uuid reads a UUID and returns it in lower case.
func (n node) uuid() string {
	s := n.line()
	id, err := uuid.Parse(s)
	if err != nil || len(s) != len(id.String()) {
		n.fault("omit it to get a new one", "%s is not a UUID", inputerror.Quote(s))
	}
	return id.String()
}

// recipients reads mail addresses and phone numbers.
func (n node) recipients() (all []string) {
	n.each(func(v node) {
		normal, err := notifyRecipient(v.line())
		if err != nil {
			v.fail(err)
		}
		all = append(all, normal)
	})
	if len(all) > maxNotifyPeople {
		n.fault("", "the list has %d recipients; at most %d are allowed", len(all), maxNotifyPeople)
	}
	return all
}

// senders reads a list from which requests choose by id.
func (n node) senders(read func(node) string) (all []catalog.NotifySender) {
	known, chosen := map[string]bool{}, 0
	n.each(func(v node) {
		var s catalog.NotifySender
		v.fields(fieldReaders{
			"id":      func(v node) { s.ID = v.uuid() },
			"address": func(v node) { s.Address = read(v) },
			"default": func(v node) { s.Default = v.yes() },
		})
		v.needs("id", "a UUID by which requests choose it")
		v.needs("address", "the address, the name or the number itself")
		if known[s.ID] {
			v.fault("use another id", "two members have the id %s", s.ID)
		}
		if known[s.ID] = true; s.Default {
			chosen++
		}
		all = append(all, s)
	})
	switch {
	case len(all) > maxNotifySenders:
		n.fault("", "the list has %d members; at most %d are allowed", len(all), maxNotifySenders)
	case chosen > 1:
		n.fault("set default for one of them", "%d members are the default", chosen)
	}
	return all
}

// SimulatedChannel returns a channel that delivers nothing, with the defaults of a document. It sends
// to the kind of addresses of another channel, in its name.
func SimulatedChannel(like *catalog.Channel) *ChannelSpec {
	c := &ChannelSpec{}
	c.Driver, c.Title = catalog.DriverSimulate, ""
	c.Connections, c.SendTimeout, c.Expiry, c.Retry = 2, catalog.Duration(time.Minute), defaultExpiry, defaultRetry
	if like.SendsTexts() {
		c.Addresses = addresskind.Names[addresskind.Phone]
		return c
	}
	c.From, c.ReplyTo, c.Domain = like.From, like.ReplyTo, like.Domain
	return c
}

// notifyRecipient returns the normal form of an address or a phone number.
func notifyRecipient(s string) (string, error) {
	if addresskind.OfAddress(s) == addresskind.Phone {
		return address.ParsePhone(s)
	}
	return address.Parse(s)
}
