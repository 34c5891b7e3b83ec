package registry

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// nextNumber is one above the highest, from 1.
func nextNumber[N ~uint16 | ~uint32](taken iter.Seq[N]) N {
	var highest N
	for n := range taken {
		highest = max(highest, n)
	}
	return highest + 1
}

func (pl *plan) channel(name string, spec *document.ChannelSpec) {
	at := inputerror.Pointer("channels", name)
	old := pl.svc.Channels[name]
	if spec.Delete {
		if old != nil {
			delete(pl.svc.Channels, name)
			pl.closed = append(pl.closed, old)
			pl.diff.Add(catalog.KindChannel, name, "delete", nil)
			pl.record(catalog.KindChannel, uint32(old.Number), name, old.ChannelSettings, true)
		}
		return
	}
	ch := &catalog.Channel{Service: pl.svc.Name, Name: name, ChannelSettings: spec.ChannelSettings}
	switch {
	case old != nil:
		changed := catalog.FieldChanges(old.ChannelSettings, ch.ChannelSettings)
		if len(changed) == 0 {
			return
		}
		if catalog.AddressKindOf(old.Driver) != catalog.AddressKindOf(ch.Driver) {
			pl.fail(at+"/driver", inputerror.Invalid("", "make another channel", "the addresses of %s are not those of %s", old.Driver, ch.Driver))
		}
		ch.Number = old.Number
		pl.diff.Add(catalog.KindChannel, name, "update", changed)
	default:
		pl.diff.Add(catalog.KindChannel, name, "create", nil)
		ch.Number = pl.channelNumber(name)
	}
	if err := pl.mayOpen(ch, old); err != nil {
		pl.fail(at, err)
	} else {
		pl.checkKeys(at, ch, old)
	}
	pl.svc.Channels[name], pl.to.Channels[ch.Number] = ch, ch
	pl.record(catalog.KindChannel, uint32(ch.Number), name, ch.ChannelSettings, false)
}

// mayOpen refuses what only an operator may name.
func (pl *plan) mayOpen(ch, old *catalog.Channel) error {
	if pl.actor == nil || pl.actor.Tenant == "" {
		return nil
	}
	return ch.CheckOperatorFields(old)
}

// checkKeys has each key looked at that the channel did not have.
func (pl *plan) checkKeys(at string, ch, old *catalog.Channel) {
	if pl.r.opt.CheckKey == nil {
		return
	}
	for i := range ch.DKIM {
		if old != nil && slices.Contains(old.DKIM, ch.DKIM[i]) {
			continue
		}
		if err := pl.r.opt.CheckKey(ch, &ch.DKIM[i]); err != nil {
			pl.fail(at+"/dkim/"+strconv.Itoa(i), err)
		}
	}
}

// channelNumber is the number that the name had before it was deleted, or a new
// one.
func (pl *plan) channelNumber(name string) uint16 {
	for number, c := range pl.to.Channels {
		if c.Service == pl.svc.Name && c.Name == name {
			return number
		}
	}
	if len(pl.to.Channels) >= math.MaxUint16 {
		pl.fail(inputerror.Pointer("channels", name), &fanfare.Error{Code: fanfare.TooLarge, Message: "there are no numbers left for channels"})
	}
	return nextNumber(maps.Keys(pl.to.Channels))
}

func (pl *plan) topic(name string, spec *document.TopicSpec) {
	at := inputerror.Pointer("topics", name)
	old := pl.svc.Topics[name]
	if spec.Delete {
		if old != nil {
			delete(pl.svc.Topics, name)
			pl.gone = append(pl.gone, old)
			pl.diff.Add(catalog.KindTopic, name, "delete", nil)
			pl.record(catalog.KindTopic, old.Number, name, old.Body, true)
		}
		return
	}
	if !pl.checkReserved(at, name, spec) {
		return
	}
	body := &catalog.TopicBody{TopicSettings: spec.TopicSettings}
	known := &catalog.TopicBody{}
	if spec.RuleMode == document.RulesOnly {
		if old == nil {
			pl.fail("", catalog.UnknownTopic(pl.svc, name))
			return
		}
		body.TopicSettings = old.Body.TopicSettings
	}
	if old != nil {
		known = old.Body
	} else if gone := pl.deletedTopic(name); gone != nil {
		body.LastRule = gone.Body.LastRule // numbers of its rules are in ended subscriptions
		body.Series = gone.Body.Series
	}
	body.Series = max(body.Series, known.Series)
	if old == nil || body.Key != known.Key {
		body.Series++ // what was known of the keys before is nobody's
	}
	body.KeepDigest(known)
	ruleChanges := mergeRules(body, name, known, spec)
	if spec.RuleMode == document.RulesOnly {
		at := slices.IndexFunc(body.Rules, func(r catalog.RuleBody) bool { return r.Name == spec.Rules[0].Name })
		pl.doc.RulePointer = inputerror.Pointer("topics", name, "rules", strconv.Itoa(at))
	}
	var number uint32
	switch {
	case old != nil:
		number = old.Number
		changed := catalog.FieldChanges(known.TopicSettings, body.TopicSettings)
		if len(changed) == 0 && len(ruleChanges) == 0 && sameOrder(known.Rules, body.Rules) {
			pl.recheck(at, old)
			return
		}
		if !sameOrder(known.Rules, body.Rules) {
			changed = append(changed, audit.FieldChange{Field: "rules", Old: ruleOrder(known.Rules), New: ruleOrder(body.Rules)})
		}
		if len(changed) > 0 {
			pl.diff.Add(catalog.KindTopic, name, "update", changed)
		}
	default:
		number = nextNumber(maps.Keys(pl.to.Topics))
		if gone := pl.deletedTopic(name); gone != nil {
			number = gone.Number
		}
		pl.diff.Add(catalog.KindTopic, name, "create", nil)
	}
	pl.diff.Changes = append(pl.diff.Changes, ruleChanges...)
	t, err := catalog.NewTopic(pl.svc, number, name, body)
	if err != nil {
		pl.fail(at, err)
		return
	}
	pl.recheck(at, t)
	pl.svc.Topics[name], pl.to.Topics[number] = t, t
	pl.defined = append(pl.defined, t)
	pl.record(catalog.KindTopic, number, name, body, false)
}

// recheck compiles the topic's conditions.
func (pl *plan) recheck(at string, t *catalog.Topic) {
	if err := pl.r.opt.Conditions.Check(t.ConditionDefinition()); err != nil {
		pl.fail(at, err)
	}
	pl.checkDigestKey(at, t)
	pl.checkCadence(at, t)
}

func (pl *plan) deletedTopic(name string) *catalog.Topic {
	for _, t := range pl.to.Topics {
		if t.ServiceNumber == pl.svc.Number && t.Name == name {
			return t
		}
	}
	return nil
}

// mergeRules sets the rules: the named ones in the order of the document, then the
// others that are known, in theirs; or as the mode of the spec says.
func mergeRules(b *catalog.TopicBody, topic string, known *catalog.TopicBody, spec *document.TopicSpec) []catalog.Change {
	b.LastRule = max(b.LastRule, known.LastRule)
	var diff catalog.Diff
	named := map[string]bool{}
	take := func(s *document.RuleSpec) {
		if named[s.Name] {
			return // in its place already
		}
		named[s.Name] = true
		i := slices.IndexFunc(known.Rules, func(r catalog.RuleBody) bool { return r.Name == s.Name })
		full := topic + "/" + s.Name
		switch {
		case s.Delete && i >= 0:
			diff.Add(catalog.KindRule, full, "delete", nil)
		case s.Delete:
		case i < 0:
			b.LastRule++
			b.Rules = append(b.Rules, catalog.RuleBody{Number: b.LastRule, Rule: s.Rule})
			diff.Add(catalog.KindRule, full, "create", nil)
		default:
			b.Rules = append(b.Rules, catalog.RuleBody{Number: known.Rules[i].Number, Rule: s.Rule})
			if changed := catalog.FieldChanges(known.Rules[i].Rule, s.Rule); len(changed) > 0 {
				diff.Add(catalog.KindRule, full, "update", changed)
			}
		}
	}
	if spec.RuleMode == document.RulesOnly {
		for _, r := range known.Rules {
			if i := slices.IndexFunc(spec.Rules, func(s document.RuleSpec) bool { return s.Name == r.Name }); i >= 0 {
				take(&spec.Rules[i])
			} else {
				b.Rules = append(b.Rules, r)
			}
		}
	}
	for i := range spec.Rules {
		take(&spec.Rules[i])
	}
	for _, r := range known.Rules {
		switch {
		case named[r.Name] || spec.RuleMode == document.RulesOnly:
		case spec.RuleMode == document.RulesReplace:
			diff.Add(catalog.KindRule, topic+"/"+r.Name, "delete", nil)
		default:
			b.Rules = append(b.Rules, r)
		}
	}
	return diff.Changes
}

// sameOrder reports whether the rules that both have stand in the same order.
func sameOrder(a, b []catalog.RuleBody) bool {
	return ruleOrder(common(a, b)) == ruleOrder(common(b, a))
}

func common(of, with []catalog.RuleBody) []catalog.RuleBody {
	return slices.DeleteFunc(slices.Clone(of), func(r catalog.RuleBody) bool {
		return !slices.ContainsFunc(with, func(o catalog.RuleBody) bool { return o.Number == r.Number })
	})
}

func ruleOrder(rules []catalog.RuleBody) string {
	s := ""
	for i, r := range rules {
		if i > 0 {
			s += ", "
		}
		s += r.Name
	}
	return s
}

// record notes what is to be kept of a member.
func (pl *plan) record(kind string, number uint32, name string, body any, deleted bool) {
	b, err := json.Marshal(body)
	if err != nil {
		pl.fail("", fmt.Errorf("%s %s: %w", kind, name, err))
	}
	pl.records = append(pl.records, control.ConfigRecord{Kind: kind, Number: number, Service: pl.svc.Number, Name: name, Body: b, Deleted: deleted})
}
