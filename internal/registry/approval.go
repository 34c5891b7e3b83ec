package registry

import (
	"maps"
	"slices"
	"strconv"

	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/catalog/audit"

	"fanfare.dev/fanfare"
)

// Hold says why a broadcast has to wait for approval, "" where it has not to.
// What its topic says counts before what its service does, where it has a number
// of its own; else it may add that urgent ones do not wait. A message to people who
// are named has no topic.
func (r *Registry) Hold(posted *fanfare.AcceptedEvent, messages int64) string {
	conf := r.config.Load()
	svc := conf.Services[posted.Service]
	if svc == nil {
		return ""
	}
	rule, whose := svc.Approval, "service "+svc.Name
	if t := svc.Topics[posted.Topic]; t != nil {
		if t.Body.HoldAbove > 0 {
			rule, whose = t.Body.Approval, "topic "+t.Name
		}
		rule.HoldExemptUrgent = rule.HoldExemptUrgent || t.Body.HoldExemptUrgent
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
	was := pl.svc.Approval
	if above := pl.doc.HoldAbove; above != nil {
		pl.svc.Approval.HoldAbove = *above
	}
	if exempt := pl.doc.HoldExemptUrgent; exempt != nil {
		pl.svc.Approval.HoldExemptUrgent = *exempt
	}
	return catalog.FieldChanges(was, pl.svc.Approval)
}

// approvalNotes tell of what a document says of approval that has no effect: it has
// one as soon as there is a number, which may come with another document.
func (pl *plan) approvalNotes() (notes []string) {
	if pl.svc.Approval.HoldAbove > 0 {
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
