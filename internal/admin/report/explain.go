package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people"
)

// Conditions knows subscriptions and their conditions.
type Conditions interface {
	Subscription(ctx context.Context, service, id string) (people.Subscription, error)
	Topic(service, name string) (*catalog.Topic, bool)
	// Explain evaluates the current condition of a subscription, part by part, for an event that follows one with the data was.
	Explain(s *people.Subscription, event *fanfare.Event, was json.RawMessage) (fanfare.Part, error)
	// Before returns the data of the last event with the same key as an event with this data, or nil if there is none.
	Before(service, topic string, data json.RawMessage) (json.RawMessage, error)
	// SecondOpinion evaluates the condition with the independent evaluator and with the index.
	SecondOpinion(ctx context.Context, s *people.Subscription, event *fanfare.Event, was []byte) (Opinion, error)
	// FoundBy returns the part of an event by which the index finds the subscription; "" if every event is evaluated.
	FoundBy(s *people.Subscription) (string, error)
	// InAudience reports whether the subscriber, as it is now, is in the audience of an event.
	InAudience(ctx context.Context, s *people.Subscription, filter string) (bool, error)
}

// An Opinion is the result of the independent evaluator for a condition and an event.
type Opinion struct {
	Result string // true, false, error or undecided
	Reason string // of an error or an undecided result

	Indexed bool // the index evaluated it, too
	Found   bool // the index finds the subscription

	Quarantined string // since when and why the condition is in quarantine; "" if it is not
}

// undecided is the result if the independent evaluator cannot decide.
const undecided = "undecided"

// defect describes a contradiction between the independent evaluator and the index or the explanation; "" without one.
func (o *Opinion) defect(explained string) string {
	const ask = "This is a bug in Fanfare. Report it with the condition, the schema of the topic and the event data"
	switch {
	case o.Result == undecided:
		return ""
	case o.Indexed && o.Found && o.Result != fanfare.PartTrue:
		return "The matching index reports the condition as true, but the independent evaluator reports " + o.Result + ". " + o.known() + ask
	case o.Indexed && !o.Found && o.Result == fanfare.PartTrue:
		return "The matching index does not report the condition as true, but the independent evaluator does. " + o.known() + ask
	case o.Result != explained:
		return "This explanation reports the condition as " + explained + ", but the independent evaluator reports " + o.Result + ". " + ask
	}
	return ""
}

// known reports whether the index has the condition.
func (o *Opinion) known() string {
	if o.Quarantined == "" {
		return "The index is used for this condition until a check of its results detects the defect. "
	}
	return "The condition is evaluated without the index: it is in quarantine " + o.Quarantined + ". "
}

// difference explains a difference between the recorded result and the current one.
func (e *explanation) difference() string {
	if e.Defect != "" {
		return "the matching index returned a wrong result for this condition (see below)"
	}
	return "the subscription or its topic has changed since then (fanfare audit lists changes); if neither has changed, the match was wrong: report it as a bug in Fanfare"
}

// Events provides the accepted and matched events.
type Events interface {
	Posted(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, error)
}

// An Explainer explains why an event matches a subscription or not. For an event that was matched, the record decides. The
// explanation also shows the current result of the independent evaluator and of the index.
type Explainer struct {
	Traces     *Traces
	Events     Events
	Conditions Conditions
}

// ExplainEvent explains an event that was accepted.
func (x *Explainer) ExplainEvent(ctx context.Context, service, subscription string, ref fanfare.EventRef) (fanfare.Explanation, error) {
	s, err := x.Conditions.Subscription(ctx, service, subscription)
	if err != nil {
		return fanfare.Explanation{}, err
	}
	posted, queued, err := Accepted(ctx, x.Traces.Queue, x.Events, ref)
	if err != nil {
		return fanfare.Explanation{}, err
	}
	e := &explanation{Explanation: about(&s)}
	e.Event = ref.String()
	if posted.Direct != nil {
		e.check("topic", false, "the event is a message to listed recipients, which does not depend on subscriptions")
		return e.conclude(), nil
	}
	if e.check("topic", posted.Topic == s.Topic, "the event belongs to the topic %s", posted.Topic); posted.Topic != s.Topic {
		e.last().Detail += ", but the subscription is to " + s.Topic
		return e.conclude(), nil
	}
	e.lifetime(&s, posted)
	was, err := x.before(ctx, posted, queued)
	if err != nil {
		return fanfare.Explanation{}, err
	}
	if err := x.condition(ctx, e, &s, &posted.Event, was); err != nil {
		return fanfare.Explanation{}, err
	}
	if a := posted.Audience; a != nil {
		in, err := x.Conditions.InAudience(ctx, &s, a.Filter)
		if err != nil {
			return fanfare.Explanation{}, err
		}
		e.check("audience", in, "the person is in the audience of the event: %s", a.Filter)
		if !in {
			e.last().Detail = "the person is not in the audience of the event: " + a.Filter
		}
	}
	if queued {
		e.check("recorded", e.good(), "the event has not been matched yet")
		return e.conclude(), nil
	}
	if err := x.recorded(ctx, e, &s, ref); err != nil {
		return fanfare.Explanation{}, err
	}
	return e.conclude(), nil
}

// ExplainData explains a hypothetical event with this data that arrives now, in the topic of the subscription. topic is the topic
// that the client expects, or "".
func (x *Explainer) ExplainData(ctx context.Context, service, subscription, topic string, data json.RawMessage) (fanfare.Explanation, error) {
	s, err := x.Conditions.Subscription(ctx, service, subscription)
	if err != nil {
		return fanfare.Explanation{}, err
	}
	e := &explanation{Explanation: about(&s)}
	if topic != "" && topic != s.Topic {
		e.check("topic", false, "the event would belong to the topic %s, but the subscription is to %s", topic, s.Topic)
		return e.conclude(), nil
	}
	t, ok := x.Conditions.Topic(s.Service, s.Topic)
	if !ok {
		e.check("topic", false, "the topic %s was deleted", s.Topic)
		return e.conclude(), nil
	}
	if err := t.ValidateData(data); err != nil {
		e.check("schema", false, "the server would refuse the event: %v", err)
	} else {
		e.check("schema", true, "the server would accept the event")
	}
	e.check("active", s.State == "active", "the subscription is active")
	switch s.State {
	case "paused":
		e.last().Detail = paused(&s)
	case "ended":
		e.last().Detail = ended(&s)
	}
	was, err := x.Conditions.Before(s.Service, s.Topic, data)
	if err != nil {
		return fanfare.Explanation{}, err
	}
	if err := x.condition(ctx, e, &s, &fanfare.Event{Type: s.Topic, Data: data}, was); err != nil {
		return fanfare.Explanation{}, err
	}
	return e.conclude(), nil
}

// before returns the data of the previous event with the same key, at the time of matching or now. It is unknown if the day
// was removed.
func (x *Explainer) before(ctx context.Context, posted *fanfare.AcceptedEvent, queued bool) (json.RawMessage, error) {
	if queued {
		return x.Conditions.Before(posted.Service, posted.Topic, posted.Event.Data)
	}
	ref, ok := fanfare.ParseEventRef(posted.After)
	if !ok {
		return nil, nil
	}
	before, err := x.Events.Posted(ctx, ref)
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return before.Event.Data, nil
}

// condition adds the result of the condition.
func (x *Explainer) condition(ctx context.Context, e *explanation, s *people.Subscription, event *fanfare.Event, was json.RawMessage) error {
	part, err := x.Conditions.Explain(s, event, was)
	if wrong, ok := errors.AsType[*fanfare.Error](err); ok && wrong.Code == fanfare.Invalid {
		e.check("condition", false, "the condition cannot be evaluated: %v", wrong)
		return nil
	}
	if err != nil {
		return err
	}
	e.Condition = &part
	if e.FoundBy, err = x.Conditions.FoundBy(s); err != nil {
		return err
	}
	if e.opinion, err = x.Conditions.SecondOpinion(ctx, s, event, was); err != nil {
		return err
	}
	e.Defect = e.opinion.defect(part.Result)
	result, reason := e.opinion.Result, e.opinion.Reason
	if result == undecided || result == part.Result {
		result, reason = part.Result, firstError(&part)
	}
	switch result {
	case fanfare.PartTrue:
		e.check("condition", true, "the condition is true")
		if s.Filter == "" && s.Rule == "" {
			e.last().Detail = "the subscription has no condition: every event of the topic matches"
		}
	case fanfare.PartError:
		e.check("condition", false, "the condition is neither true nor false, so the event does not match: %s", reason)
	default:
		e.check("condition", false, "the condition is false")
	}
	return nil
}

// firstError returns the first error in a part and the parts below.
func firstError(p *fanfare.Part) string {
	if p.Error != "" {
		return p.Error
	}
	for i := range p.Parts {
		if p.Parts[i].Result == fanfare.PartError {
			return firstError(&p.Parts[i])
		}
	}
	return ""
}

// recorded adds the recorded match and its deliveries.
func (x *Explainer) recorded(ctx context.Context, e *explanation, s *people.Subscription, ref fanfare.EventRef) error {
	now := e.good()
	m, err := x.Traces.Store.ManifestOf(ctx, ref, s.Owner.Partition())
	if err != nil {
		return err
	}
	section, member, position := memberOf(m, s)
	if section == nil {
		if found, err := x.gathered(ctx, e, s, ref); found || err != nil {
			return err
		}
		if s.OfState() {
			e.ofState(s)
			return nil
		}
	}
	e.check("recorded", section != nil, "the subscription was among the recipients when the event was matched")
	e.decided = true
	switch {
	case section == nil && now:
		e.last().Detail = "the subscription was not among the recipients when the event was matched: " + e.difference()
	case section == nil:
		e.last().Detail = "the subscription was not among the recipients when the event was matched"
	case !now:
		e.last().Detail += ", although it would not be now: " + e.difference()
	}
	if section == nil {
		return nil
	}
	if err := x.template(ctx, e, s, section, member); err != nil {
		return err
	}
	b, err := x.Traces.broadcast(ctx, ref)
	if err != nil {
		return err
	}
	list, err := x.Traces.deliveries(ctx, b, ref.Day, m, position, position+1)
	if err != nil {
		return err
	}
	e.Delivery = &list[0]
	e.check("delivery", reached(list[0].State), "%s", outcome(&list[0]))
	return nil
}

// memberOf returns the member of a manifest that contains a subscription.
func memberOf(m *fanfare.Manifest, s *people.Subscription) (*fanfare.Section, fanfare.Member, uint32) {
	if m == nil {
		return nil, fanfare.Member{}, 0
	}
	for _, position := range m.PositionsOf(s.Owner) {
		section, member, _ := m.At(position)
		if _, found := slices.BinarySearch(member.Subscriptions, s.Place); found {
			return section, member, position
		}
	}
	return nil, fanfare.Member{}, 0
}

// template adds which subscription selected the template, if one message is for several.
func (x *Explainer) template(ctx context.Context, e *explanation, s *people.Subscription, section *fanfare.Section, member fanfare.Member) error {
	name := "a deleted template"
	if t, ok := x.Traces.Registry.Template(section.Template); ok {
		name = fmt.Sprintf("template %s@%d", t.Name, t.Version)
	}
	if len(member.Subscriptions) == 1 {
		e.check("template", true, "the message uses %s", name)
		return nil
	}
	topic, ok := x.Conditions.Topic(s.Service, s.Topic)
	if !ok {
		return nil
	}
	rank := func(rule string) int {
		if i := slices.IndexFunc(topic.Rules, func(r catalog.Rule) bool { return r.Name == rule }); i >= 0 && rule != "" {
			return i
		}
		return len(topic.Rules)
	}
	best, bestRank := people.SubscriptionRow{}, len(topic.Rules)+1
	err := x.Traces.Registry.Subscriptions(ctx, member.Subscriptions, func(r *people.SubscriptionRow) error {
		if rank(r.Rule) < bestRank {
			best, bestRank = people.SubscriptionRow{Place: r.Place, ID: r.ID, Rule: r.Rule}, rank(r.Rule)
		}
		return nil
	})
	if err != nil {
		return err
	}
	by := best.ID
	if best.Rule != "" {
		by += " (rule " + best.Rule + ")"
	}
	e.check("template", best.Place == s.Place, "one message covers %d subscriptions of this person, and %s selected the %s", len(member.Subscriptions), by, name)
	return nil
}

// reached reports whether a state is a success so far.
func reached(state string) bool {
	return state == fanfare.Accepted.String() || state == fanfare.Delivered.String()
}

// outcome describes the state of a delivery and the last reply of the next hop.
func outcome(d *fanfare.Delivery) string {
	text := fmt.Sprintf("delivery %s is %s", d.ID, d.State)
	if len(d.Attempts) == 0 {
		return text + ": no attempt has been made yet"
	}
	last := d.Attempts[len(d.Attempts)-1]
	text += " since " + last.At.UTC().Format(time.RFC3339)
	if last.Code != 0 {
		text += fmt.Sprintf(": %d %s", last.Code, last.Text)
	} else if last.Text != "" {
		text += ": " + last.Text
	}
	return text
}

// An explanation is an Explanation that is being built.
type explanation struct {
	fanfare.Explanation
	decided bool // the record decided; only checks of deliveries follow
	state   bool // the topic reports states, not events
	opinion Opinion
}

// immediate is the cadence without digests.
const immediate = "immediate"

func about(s *people.Subscription) fanfare.Explanation {
	e := fanfare.Explanation{Subscription: s.ID, Service: s.Service, Topic: s.Topic, Filter: s.Filter, Rule: s.Rule, Params: s.Params}
	if s.Cadence != immediate {
		e.Cadence = s.Cadence
	}
	return e
}

func (e *explanation) check(name string, holds bool, format string, args ...any) {
	e.Checks = append(e.Checks, fanfare.Check{Name: name, Holds: holds, Detail: fmt.Sprintf(format, args...)})
}

func (e *explanation) last() *fanfare.Check { return &e.Checks[len(e.Checks)-1] }

// good reports whether all checks so far passed.
func (e *explanation) good() bool { return e.failed() == nil }

// failed returns the first check that failed, or nil.
func (e *explanation) failed() *fanfare.Check {
	for i := range e.Checks {
		if !e.Checks[i].Holds {
			return &e.Checks[i]
		}
	}
	return nil
}

// lifetime adds whether the subscription existed when the event was received.
func (e *explanation) lifetime(s *people.Subscription, posted *fanfare.AcceptedEvent) {
	came := posted.ReceivedAt.UTC().Format(time.RFC3339)
	began := s.CreatedSeq <= posted.ChangeSeq
	e.check("begun", began, "the subscription began before the event was received")
	if !began {
		e.last().Detail = fmt.Sprintf("the subscription began at %s, after the event was received at %s", s.CreatedAt.Format(time.RFC3339), came)
	}
	switch {
	case s.PausedSeq != 0 && s.PausedSeq <= posted.ChangeSeq && (s.ResumedSeq == 0 || s.ResumedSeq > posted.ChangeSeq) && (s.EndedSeq == 0 || s.EndedSeq > posted.ChangeSeq):
		e.check("active", false, "the subscription was paused when the event was received at %s", came)
	case s.State == "paused":
		e.check("active", true, "the subscription was active when the event was received at %s; %s", came, paused(s))
	case s.EndedSeq == 0:
		e.check("active", true, "the subscription is active")
	case s.EndedSeq > posted.ChangeSeq:
		e.check("active", true, "the subscription was active when the event was received at %s; %s", came, ended(s))
	default:
		e.check("active", false, "%s, before the event was received at %s", ended(s), came)
	}
}

func paused(s *people.Subscription) string {
	return "it has been paused since " + s.PausedAt.Format(time.RFC3339)
}

func ended(s *people.Subscription) string {
	text := "it ended at " + s.EndedAt.Format(time.RFC3339)
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}

// ofState adds the explanation for a topic whose messages report the state at their due time.
func (e *explanation) ofState(s *people.Subscription) {
	e.state = true
	e.check("state", true, "each message (%s) reports the state at its due time: the last event of each key for which the condition is then true", s.Cadence)
}

// conclude sets the verdict.
func (e *explanation) conclude() fanfare.Explanation {
	wrong := e.failed()
	if e.decided {
		for i := range e.Checks {
			if c := &e.Checks[i]; c.Name == "recorded" {
				e.Wanted = c.Holds
			}
		}
	} else {
		e.Wanted = wrong == nil
	}
	switch {
	case e.Wanted && e.Delivery != nil:
		e.Summary = "The event was for this subscription: " + outcome(e.Delivery)
	case e.Wanted && e.state:
		e.Summary = "The event is for this subscription: the next message reports it if it is still the last event of its key"
	case e.Wanted && e.decided:
		e.Summary = "The event was for this subscription"
	case e.Wanted && e.Event != "":
		e.Summary = "The event is for this subscription but has not been matched yet"
	case e.Wanted:
		e.Summary = "Such an event is for this subscription"
	case e.Event != "":
		e.Summary = "The event was not for this subscription: " + wrong.Detail
	default:
		e.Summary = "Such an event is not for this subscription: " + wrong.Detail
	}
	return e.Explanation
}

// gathered adds that the event waits for a digest of the subscription, and the result.
func (x *Explainer) gathered(ctx context.Context, e *explanation, s *people.Subscription, ref fanfare.EventRef) (bool, error) {
	g, err := x.Traces.Digests.Waiting(ctx, ref, s.Owner, s.Place)
	if g == nil || err != nil {
		return false, err
	}
	now := e.good()
	e.check("recorded", true, "the subscription was among the recipients when the event was matched")
	if !now {
		e.last().Detail += ", although it would not be now: " + e.difference()
	}
	e.decided = true
	when := g.Cadence
	if g.Zone != "" {
		when += " " + g.Zone
	}
	if g.Digest == "" {
		e.check("digest", true, "the event waits for the next digest (%s), which is due at %s", when, g.Due.UTC().Format("2006-01-02 15:04:05Z"))
		return true, nil
	}
	list, err := x.Traces.digestsOf(ctx, ref, s.Owner)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(list, func(d fanfare.Delivery) bool { return slices.Contains(d.Subscriptions, s.ID) })
	e.check("digest", at >= 0, "the digest %s (%s) contains the event", g.Digest, when)
	if at < 0 {
		e.last().Detail = "the digest " + g.Digest + " (" + when + ") does not contain the event: the subscription ended or was changed, a newer event with the same key was received, or the digest had too many events"
		return true, nil
	}
	e.Delivery = &list[at]
	e.check("delivery", reached(list[at].State), "%s", outcome(&list[at]))
	return true, nil
}
