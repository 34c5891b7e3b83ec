package dispatch

import (
	"context"
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
)

// A template with a formatter gets its messages from a worker. The response has an object for each recipient, which the
// template reads as the variable formatted, or the error because of which the recipient gets no message:
//
//	{"messages": [{"id": "dlv-20261120-40-0", "subject": "...", "text": "...", "html": "..."},
//	              {"id": "dlv-20261120-40-1", "error": "no price for this customer"}]}

// formatted is the answer of a formatter for one recipient.
type formatted struct {
	message json.RawMessage
	wrong   string // why the recipient gets no message, or ""
	waits   bool   // no instance of the formatter is connected
}

// format asks the formatters for the messages of all members whose templates have one.
func (l *loader) format(ctx context.Context, events *eventReader, members []openMember, rows *rows, channel *catalog.Channel) error {
	l.formatted = nil
	requests := workerRequests{loader: l, role: "formatter", channel: channel}
	for i := range members {
		m, err := l.mailingFor(ctx, events, members[i:], channel)
		if err != nil {
			return err
		}
		if m.formatter == "" || m.event.Filter != "" && !l.kept(members[i].ref) {
			continue
		}
		r := l.recipient(&members[i], m, rows)
		if r == nil {
			continue
		}
		refused, err := requests.add(m.formatter, "", m, r)
		if err != nil {
			return err
		}
		if refused != "" {
			l.setFormatted(members[i].ref, formatted{wrong: refused})
		}
	}
	answers := make([][]formatted, len(requests.all))
	err := requests.send(func(r *workerRequest, body []byte) ([]byte, error) {
		return l.Workers.Format(ctx, r.Service, r.name, r.Template, body)
	}, func(i int, response []byte) error {
		r := requests.all[i]
		answers[i] = slices.Repeat([]formatted{{wrong: r.worker + " returned no message for the recipient"}}, len(r.recipients))
		return r.read(response, func(at int, message json.RawMessage, wrong string) error {
			answers[i][at] = formatted{message: message, wrong: wrong}
			return nil
		})
	})
	if err != nil {
		return err
	}
	for i, r := range requests.all {
		for j, to := range r.recipients {
			if answers[i] == nil {
				l.setFormatted(to, formatted{waits: true})
			} else {
				l.setFormatted(to, answers[i][j])
			}
		}
	}
	return nil
}

func (l *loader) setFormatted(of fanfare.DeliveryRef, f formatted) {
	if l.formatted == nil {
		l.formatted = map[fanfare.DeliveryRef]formatted{}
	}
	l.formatted[of] = f
}
