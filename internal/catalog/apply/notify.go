package apply

import (
	"github.com/google/uuid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/inputerror"
)

// setNotify applies the settings for clients of GOV.UK Notify. The id of the service stays for good unless
// the document has another.
func (pl *Plan) setNotify() []audit.FieldChange {
	asked := pl.Document.Notify
	if asked == nil {
		return nil
	}
	was, is := pl.Service.Notify, *asked
	if is.ID == "" {
		is.ID = was.ID
	}
	if is.ID == "" && is.Email+is.SMS != "" {
		is.ID = uuid.NewString()
	}
	for _, other := range catalog.SortedValues(pl.To.Services) {
		if is.ID != "" && other.Name != pl.Service.Name && other.Notify.ID == is.ID {
			pl.fail("/notify/id", &fanfare.Error{Code: fanfare.Conflict, Message: "another service has this id", Hint: "omit id to get a new one"})
		}
	}
	pl.Service.Notify = is
	changes := catalog.FieldChanges(was, is)
	for i := range changes {
		changes[i].Field = "notify." + changes[i].Field
		if changes[i].Field == "notify.team" || changes[i].Field == "notify.guest_list" {
			changes[i].Old, changes[i].New = "", "changed" // the log has no addresses
		}
	}
	return changes
}

// notifyChannels checks the channels for clients of GOV.UK Notify, and creates those of test keys.
func (pl *Plan) notifyChannels() {
	if pl.Document.DeleteService {
		return
	}
	if name := pl.Service.Notify.Callbacks.Delivery; name != "" {
		at := inputerror.Pointer("notify", "callbacks", "delivery")
		switch ch := pl.Service.Channels[name]; {
		case ch == nil:
			pl.fail(at, inputerror.Invalid("", "add the channel to the document", "the service has no channel %s", inputerror.Quote(name)))
		case ch.Driver != "webhook" || ch.SendsTexts() || ch.URL == "":
			pl.fail(at, inputerror.Invalid("", "use a channel with the driver webhook, and set its url to the receiver", "channel %s cannot post callbacks", inputerror.Quote(name)))
		}
	}
	for _, one := range []struct {
		field, name, test string
		sms               bool
	}{{"email", pl.Service.Notify.Email, catalog.NotifyTestEmail, false}, {"sms", pl.Service.Notify.SMS, catalog.NotifyTestSMS, true}} {
		if one.name == "" {
			continue
		}
		ch := pl.Service.Channels[one.name]
		at := inputerror.Pointer("notify", one.field)
		switch {
		case ch == nil:
			pl.fail(at, inputerror.Invalid("", "add the channel to the document", "the service has no channel %s", inputerror.Quote(one.name)))
		case one.sms != ch.SendsTexts() || !one.sms && !ch.SendsMail():
			pl.fail(at, inputerror.Invalid("", "use a channel that sends mail for email, and one with addresses: phone for sms", "channel %s sends to %s addresses", inputerror.Quote(one.name), ch.AddressKindName()))
		case pl.Document.Channels[one.test] == nil:
			pl.channel(one.test, document.SimulatedChannel(ch))
		}
	}
}
