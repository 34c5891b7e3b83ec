package registry

import (
	"strconv"

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
