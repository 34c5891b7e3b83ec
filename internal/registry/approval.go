package registry

import (
	"maps"
	"slices"
	"strconv"

	"fanfare.dev/fanfare/internal/catalog/audit"

	"fanfare.dev/fanfare"
)

// maxHoldAbove is the most that hold_above may say: as good as never.
const maxHoldAbove = 1_000_000_000

// An Approval says which broadcasts wait for one. The zero Approval is: none.
type Approval struct {
	HoldAbove        int  `json:"hold_above,omitempty"`         // those with more messages; 0: not said
	HoldExemptUrgent bool `json:"hold_exempt_urgent,omitempty"` // but not those of the lane urgent
}

// Hold says why a broadcast has to wait for approval, "" where it has not to.
// What its topic says counts before what its service does, where it has a number
// of its own; else it may add that urgent ones do not wait. A message to people who
// are named has no topic.
func (r *Registry) Hold(posted *fanfare.AcceptedEvent, messages int64) string {
	conf := r.config.Load()
	svc := conf.services[posted.Service]
	if svc == nil {
		return ""
	}
	rule, whose := svc.approval, "service "+svc.name
	if t := svc.topics[posted.Topic]; t != nil {
		if t.body.HoldAbove > 0 {
			rule, whose = t.body.Approval, "topic "+t.Name
		}
		rule.HoldExemptUrgent = rule.HoldExemptUrgent || t.body.HoldExemptUrgent
	}
	switch {
	case rule.HoldAbove == 0 || messages <= int64(rule.HoldAbove):
		return ""
	case rule.HoldExemptUrgent && posted.Lane == fanfare.Urgent:
		return ""
	}
	return "waits for approval: " + strconv.FormatInt(messages, 10) + " messages are more than the " + strconv.Itoa(rule.HoldAbove) + " of " + whose
}

// setApproval takes over what the document says about approval.
func (pl *plan) setApproval() []audit.FieldChange {
	was := pl.svc.approval
	if above := pl.doc.HoldAbove; above != nil {
		pl.svc.approval.HoldAbove = *above
	}
	if exempt := pl.doc.HoldExemptUrgent; exempt != nil {
		pl.svc.approval.HoldExemptUrgent = *exempt
	}
	return fieldChanges(was, pl.svc.approval)
}

// approvalNotes tell of what a document says of approval that has no effect: it has
// one as soon as there is a number, which may come with another document.
func (pl *plan) approvalNotes() (notes []string) {
	if pl.svc.approval.HoldAbove > 0 {
		return nil
	}
	if exempt := pl.doc.HoldExemptUrgent; exempt != nil && *exempt {
		notes = append(notes, "hold_exempt_urgent of the service has no effect: it has no hold_above, above which broadcasts wait for approval")
	}
	for _, name := range slices.Sorted(maps.Keys(pl.doc.Topics)) {
		if t := pl.doc.Topics[name]; t != nil && !t.Delete && t.HoldExemptUrgent && t.HoldAbove == 0 {
			notes = append(notes, "hold_exempt_urgent of topic "+name+" has no effect: neither the topic nor the service has a hold_above, above which broadcasts wait for approval")
		}
	}
	return notes
}

// holdFields are the fields of a topic's or a service's approval.
func holdFields(above func(int), exempt func(bool)) fields {
	return fields{
		"hold_above":         func(v node) { above(v.number(1, maxHoldAbove)) },
		"hold_exempt_urgent": func(v node) { exempt(v.yes()) },
	}
}

// approvalFields reads what is said of the service.
func (d *Document) approvalFields() fields {
	return holdFields(func(n int) { d.HoldAbove = &n }, func(yes bool) { d.HoldExemptUrgent = &yes })
}

// approvalFields reads what is said of a topic.
func (t *TopicSpec) approvalFields() fields {
	return holdFields(func(n int) { t.HoldAbove = n }, func(yes bool) { t.HoldExemptUrgent = yes })
}
