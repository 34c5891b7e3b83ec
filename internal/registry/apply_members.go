package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

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

func (pl *plan) channel(name string, spec *ChannelSpec) {
	at := inputerror.Pointer("channels", name)
	old := pl.svc.channels[name]
	if spec.Delete {
		if old != nil {
			delete(pl.svc.channels, name)
			pl.closed = append(pl.closed, old)
			pl.diff.add(kindChannel, name, "delete", nil)
			pl.record(kindChannel, uint32(old.Number), name, old.ChannelSettings, true)
		}
		return
	}
	ch := &Channel{Service: pl.svc.name, Name: name, ChannelSettings: spec.ChannelSettings}
	switch {
	case old != nil:
		changed := fieldChanges(old.ChannelSettings, ch.ChannelSettings)
		if len(changed) == 0 {
			return
		}
		if kindOf(old.Driver) != kindOf(ch.Driver) {
			pl.fail(at+"/driver", inputerror.Invalid("", "make another channel", "the addresses of %s are not those of %s", old.Driver, ch.Driver))
		}
		ch.Number = old.Number
		pl.diff.add(kindChannel, name, "update", changed)
	default:
		pl.diff.add(kindChannel, name, "create", nil)
		ch.Number = pl.channelNumber(name)
	}
	if err := pl.mayOpen(ch, old); err != nil {
		pl.fail(at, err)
	} else {
		pl.checkKeys(at, ch, old)
	}
	pl.svc.channels[name], pl.to.channels[ch.Number] = ch, ch
	pl.record(kindChannel, uint32(ch.Number), name, ch.ChannelSettings, false)
}

// mayOpen refuses what only an operator may name.
func (pl *plan) mayOpen(ch, old *Channel) error {
	if pl.actor == nil || pl.actor.Tenant == "" {
		return nil
	}
	return ch.onlyTheOperators(old)
}

// checkKeys has each key looked at that the channel did not have.
func (pl *plan) checkKeys(at string, ch, old *Channel) {
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
	for number, c := range pl.to.channels {
		if c.Service == pl.svc.name && c.Name == name {
			return number
		}
	}
	if len(pl.to.channels) >= math.MaxUint16 {
		pl.fail(inputerror.Pointer("channels", name), &fanfare.Error{Code: fanfare.TooLarge, Message: "there are no numbers left for channels"})
	}
	return nextNumber(maps.Keys(pl.to.channels))
}

func (pl *plan) topic(name string, spec *TopicSpec) {
	at := inputerror.Pointer("topics", name)
	old := pl.svc.topics[name]
	if spec.Delete {
		if old != nil {
			delete(pl.svc.topics, name)
			pl.gone = append(pl.gone, old)
			pl.diff.add(kindTopic, name, "delete", nil)
			pl.record(kindTopic, old.Number, name, old.body, true)
		}
		return
	}
	if !pl.checkReserved(at, name, spec) {
		return
	}
	body := &topicBody{TopicSettings: spec.TopicSettings}
	known := &topicBody{}
	if spec.rules == rulesAlone {
		if old == nil {
			pl.fail("", unknownTopic(pl.svc, name))
			return
		}
		body.TopicSettings = old.body.TopicSettings
	}
	if old != nil {
		known = old.body
	} else if gone := pl.deletedTopic(name); gone != nil {
		body.LastRule = gone.body.LastRule // numbers of its rules are in ended subscriptions
		body.Series = gone.body.Series
	}
	body.Series = max(body.Series, known.Series)
	if old == nil || body.Key != known.Key {
		body.Series++ // what was known of the keys before is nobody's
	}
	body.keepDigest(known)
	ruleChanges := body.merge(name, known, spec)
	if spec.rules == rulesAlone {
		at := slices.IndexFunc(body.Rules, func(r ruleBody) bool { return r.Name == spec.Rules[0].Name })
		pl.doc.ruleAt = inputerror.Pointer("topics", name, "rules", itoa(at))
	}
	var number uint32
	switch {
	case old != nil:
		number = old.Number
		changed := fieldChanges(known.TopicSettings, body.TopicSettings)
		if len(changed) == 0 && len(ruleChanges) == 0 && sameOrder(known.Rules, body.Rules) {
			pl.recheck(at, old)
			return
		}
		if !sameOrder(known.Rules, body.Rules) {
			changed = append(changed, audit.FieldChange{Field: "rules", Old: ruleOrder(known.Rules), New: ruleOrder(body.Rules)})
		}
		if len(changed) > 0 {
			pl.diff.add(kindTopic, name, "update", changed)
		}
	default:
		number = nextNumber(maps.Keys(pl.to.topics))
		if gone := pl.deletedTopic(name); gone != nil {
			number = gone.Number
		}
		pl.diff.add(kindTopic, name, "create", nil)
	}
	pl.diff.Changes = append(pl.diff.Changes, ruleChanges...)
	t, err := newTopic(pl.svc, number, name, body)
	if err != nil {
		pl.fail(at, err)
		return
	}
	pl.recheck(at, t)
	pl.svc.topics[name], pl.to.topics[number] = t, t
	pl.defined = append(pl.defined, t)
	pl.record(kindTopic, number, name, body, false)
}

// recheck compiles the topic's conditions.
func (pl *plan) recheck(at string, t *Topic) {
	if err := pl.r.opt.Conditions.Check(t.definition()); err != nil {
		pl.fail(at, err)
	}
	pl.checkDigestKey(at, t)
	pl.checkCadence(at, t)
}

func (pl *plan) deletedTopic(name string) *Topic {
	for _, t := range pl.to.topics {
		if t.service == pl.svc.number && t.Name == name {
			return t
		}
	}
	return nil
}

// merge sets the rules: the named ones in the order of the document, then the
// others that are known, in theirs; or as the mode of the spec says.
func (b *topicBody) merge(topic string, known *topicBody, spec *TopicSpec) []Change {
	b.LastRule = max(b.LastRule, known.LastRule)
	var diff Diff
	named := map[string]bool{}
	take := func(s *RuleSpec) {
		if named[s.Name] {
			return // in its place already
		}
		named[s.Name] = true
		i := slices.IndexFunc(known.Rules, func(r ruleBody) bool { return r.Name == s.Name })
		full := topic + "/" + s.Name
		switch {
		case s.Delete && i >= 0:
			diff.add(kindRule, full, "delete", nil)
		case s.Delete:
		case i < 0:
			b.LastRule++
			b.Rules = append(b.Rules, ruleBody{b.LastRule, s.Rule})
			diff.add(kindRule, full, "create", nil)
		default:
			b.Rules = append(b.Rules, ruleBody{known.Rules[i].Number, s.Rule})
			if changed := fieldChanges(known.Rules[i].Rule, s.Rule); len(changed) > 0 {
				diff.add(kindRule, full, "update", changed)
			}
		}
	}
	if spec.rules == rulesAlone {
		for _, r := range known.Rules {
			if i := slices.IndexFunc(spec.Rules, func(s RuleSpec) bool { return s.Name == r.Name }); i >= 0 {
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
		case named[r.Name] || spec.rules == rulesAlone:
		case spec.rules == rulesExact:
			diff.add(kindRule, topic+"/"+r.Name, "delete", nil)
		default:
			b.Rules = append(b.Rules, r)
		}
	}
	return diff.Changes
}

// sameOrder reports whether the rules that both have stand in the same order.
func sameOrder(a, b []ruleBody) bool {
	return ruleOrder(common(a, b)) == ruleOrder(common(b, a))
}

func common(of, with []ruleBody) []ruleBody {
	return slices.DeleteFunc(slices.Clone(of), func(r ruleBody) bool {
		return !slices.ContainsFunc(with, func(o ruleBody) bool { return o.Number == r.Number })
	})
}

func ruleOrder(rules []ruleBody) string {
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
	pl.records = append(pl.records, control.ConfigRecord{Kind: kind, Number: number, Service: pl.svc.number, Name: name, Body: b, Deleted: deleted})
}

func (d *Diff) add(kind, name, action string, fields []audit.FieldChange) {
	d.Changes = append(d.Changes, Change{Kind: kind, Name: name, Action: action, Fields: fields})
}

// fieldChanges compares two values of one type, field by field as JSON spells
// them.
func fieldChanges(before, after any) []audit.FieldChange {
	was, is := fieldTexts(before), fieldTexts(after)
	names := slices.Collect(maps.Keys(was))
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	var changed []audit.FieldChange
	for _, name := range names {
		if was[name] != is[name] {
			changed = append(changed, audit.FieldChange{Field: name, Old: was[name], New: is[name]})
		}
	}
	slices.SortFunc(changed, func(a, b audit.FieldChange) int { return cmp.Compare(a.Field, b.Field) })
	return changed
}

func fieldTexts(v any) map[string]string {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(b, &raw) != nil {
		return nil
	}
	texts := make(map[string]string, len(raw))
	for name, value := range raw {
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		texts[name] = s
	}
	return texts
}
