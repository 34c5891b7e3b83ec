package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// The events of a topic with a filter ask a worker about each member before anything is sent to it. The answers are stored
// first, so that a batch that is loaded again does not ask about a member again:
//
//	{"messages": [{"id": "dlv-20261120-40-0", "keep": true}, {"id": "dlv-20261120-40-1", "keep": false},
//	              {"id": "dlv-20261120-40-2", "error": "no account for this customer"}]}

// filtered contains the answers of filters for the members of a batch.
type filtered struct {
	answers deliveries.FilterAnswers
	faults  map[fanfare.DeliveryRef]string // texts of answers that were received for this batch
}

// kept reports whether a filter has decided to keep a member.
func (l *loader) kept(of fanfare.DeliveryRef) bool {
	answer, asked := l.filtered.answers[of]
	return asked && answer == deliveries.FilterKeeps
}

// filterOutcome returns the outcome of a member of a mailing with a filter. asked is false if there is no answer yet; reason
// is "" if the filter keeps the member.
func (l *loader) filterOutcome(of fanfare.DeliveryRef, m *mailing) (state fanfare.State, reason string, asked bool) {
	answer, asked := l.filtered.answers[of]
	switch {
	case !asked || answer == deliveries.FilterKeeps:
		return 0, "", asked
	case answer == deliveries.FilterRemoves:
		return fanfare.Suppressed, "removed by filter " + m.event.Filter, true
	}
	if text := l.filtered.faults[of]; text != "" {
		return fanfare.Failed, text, true
	}
	return fanfare.Failed, "filter " + m.event.Filter + " returned an error for the recipient", true
}

// filter asks the filters about all members that have no stored answer and would get a message now.
func (l *loader) filter(ctx context.Context, events *eventReader, members []openMember, rows *rows, channel *catalog.Channel, quiet *quietTimes) error {
	l.filtered, l.formatted, l.waits = filtered{}, nil, nil
	concerned, refs, err := l.filteredMembers(ctx, events, members, channel)
	if err != nil || len(refs) == 0 {
		return err
	}
	if l.filtered.answers, err = l.Store.FilterAnswers(ctx, refs[0].Day, refs); err != nil {
		return err
	}
	l.filtered.faults = map[fanfare.DeliveryRef]string{}
	requests := workerRequests{loader: l, role: "filter", channel: channel}
	tooLarge := deliveries.FilterAnswers{}
	for _, i := range concerned {
		member := &members[i]
		if _, known := l.filtered.answers[member.ref]; known {
			continue
		}
		m, err := l.mailingFor(ctx, events, members[i:], channel)
		if err != nil {
			return err
		}
		r := l.recipient(member, m, rows)
		var seen uint64
		if _, reason := l.refusal(m, r, channel, &seen); reason != "" || quiet.of(m, r.TimeZone, member.member.Subscriber, m.expiry(channel)).At(l.Clock.Now()) {
			continue
		}
		refused, err := requests.add(m.event.Filter, m.event.Topic, m, r)
		if err != nil {
			return err
		}
		if refused != "" {
			tooLarge[member.ref], l.filtered.faults[member.ref] = deliveries.FilterFailed, refused
		}
	}
	return l.askFilters(ctx, refs[0].Day, &requests, tooLarge)
}

// filteredMembers returns the indices and references of the members whose events have a filter. Members of one event are
// neighbours.
func (l *loader) filteredMembers(ctx context.Context, events *eventReader, members []openMember, channel *catalog.Channel) (indices []int, refs []fanfare.DeliveryRef, err error) {
	var m *mailing
	for i := range members {
		if i == 0 || members[i].event() != members[i-1].event() {
			if m, err = l.mailingFor(ctx, events, members[i:], channel); err != nil {
				return nil, nil, err
			}
		}
		if m.event.Filter != "" {
			indices, refs = append(indices, i), append(refs, members[i].ref)
		}
	}
	return indices, refs, nil
}

// askFilters sends the requests and stores the answers, together with those that are known. If a request fails, the answers
// to the others are stored before the error is returned. Members of a request without a response have no answer.
func (l *loader) askFilters(ctx context.Context, day fanfare.Day, requests *workerRequests, known deliveries.FilterAnswers) error {
	answers := make([]deliveries.FilterAnswers, len(requests.all))
	faults := make([]map[fanfare.DeliveryRef]string, len(requests.all))
	failed := requests.send(func(r *workerRequest, body []byte) ([]byte, error) {
		return l.Workers.Filter(ctx, r.Service, r.name, r.Topic, body)
	}, func(i int, response []byte) (err error) {
		answers[i], faults[i], err = requests.all[i].filterAnswers(response)
		return err
	})
	for i := range answers {
		maps.Copy(known, answers[i])
		maps.Copy(l.filtered.faults, faults[i])
	}
	if len(known) == 0 {
		return failed
	}
	failpoint.Hit("before-filter-answers")
	err := retry.WhileAway(ctx, func() error {
		stored, err := l.Store.KeepFilterAnswers(ctx, day, known)
		maps.Copy(l.filtered.answers, stored)
		return err
	})
	failpoint.Hit("after-filter-answers")
	return errors.Join(failed, err)
}

// filterAnswers reads the response of a filter. It must have an answer for each recipient.
func (r *workerRequest) filterAnswers(response []byte) (deliveries.FilterAnswers, map[fanfare.DeliveryRef]string, error) {
	answers, faults := deliveries.FilterAnswers{}, map[fanfare.DeliveryRef]string{}
	err := r.read(response, func(i int, message json.RawMessage, wrong string) error {
		to := r.recipients[i]
		var one struct {
			Keep *bool `json:"keep"`
		}
		err := json.Unmarshal(message, &one)
		switch {
		case wrong != "":
			answers[to], faults[to] = deliveries.FilterFailed, wrong
		case err != nil:
			return fmt.Errorf("the answer for %s is not valid: %w", to, err)
		case one.Keep == nil:
			return fmt.Errorf("the answer for %s has neither keep nor error", to)
		case *one.Keep:
			answers[to] = deliveries.FilterKeeps
		default:
			answers[to] = deliveries.FilterRemoves
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for _, to := range r.recipients {
		if _, answered := answers[to]; !answered {
			return nil, nil, fmt.Errorf("the response has no answer for %s", to)
		}
	}
	return answers, faults, nil
}
