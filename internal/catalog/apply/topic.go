package apply

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/inputerror"
)

func (pl *Plan) topic(name string, spec *document.TopicSpec) {
	at := inputerror.Pointer("topics", name)
	old := pl.Service.Topics[name]
	if spec.Delete {
		if old != nil {
			pl.DeletedTopics = append(pl.DeletedTopics, old)
			deleteMember(pl, pl.Service.Topics, catalog.KindTopic, name, old.Number, old.Body)
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
			pl.fail("", catalog.UnknownTopic(pl.Service, name))
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
		body.Series++ // the existing states of the keys no longer apply
	}
	body.KeepDigest(known)
	ruleChanges := mergeRules(body, name, known, spec)
	if spec.RuleMode == document.RulesOnly {
		at := slices.IndexFunc(body.Rules, func(r catalog.RuleBody) bool { return r.Name == spec.Rules[0].Name })
		pl.Document.RulePointer = inputerror.Pointer("topics", name, "rules", strconv.Itoa(at))
	}
	var number uint32
	switch {
	case old != nil:
		number = old.Number
		changed := catalog.FieldChanges(known.TopicSettings, body.TopicSettings)
		if len(changed) == 0 && len(ruleChanges) == 0 && sameOrder(known.Rules, body.Rules) {
			pl.checkTopic(at, old)
			return
		}
		if !sameOrder(known.Rules, body.Rules) {
			changed = append(changed, audit.FieldChange{Field: "rules", Old: ruleOrder(known.Rules), New: ruleOrder(body.Rules)})
		}
		if len(changed) > 0 {
			pl.Diff.Add(catalog.KindTopic, name, "update", changed)
		}
	default:
		number = nextNumber(maps.Keys(pl.To.Topics))
		if gone := pl.deletedTopic(name); gone != nil {
			number = gone.Number
		}
		pl.Diff.Add(catalog.KindTopic, name, "create", nil)
	}
	pl.Diff.Changes = append(pl.Diff.Changes, ruleChanges...)
	t, err := catalog.NewTopic(pl.Service, number, name, body)
	if err != nil {
		pl.fail(at, err)
		return
	}
	pl.checkTopic(at, t)
	pl.Service.Topics[name], pl.To.Topics[number] = t, t
	pl.ChangedTopics = append(pl.ChangedTopics, t)
	pl.addRecord(catalog.KindTopic, number, name, body, false)
}

// checkTopic compiles the topic's conditions.
func (pl *Plan) checkTopic(at string, t *catalog.Topic) {
	if err := pl.opt.CheckConditions(t.ConditionDefinition()); err != nil {
		pl.fail(at, err)
	}
	pl.checkDigestKey(at, t)
	pl.checkCadence(at, t)
	pl.checkFilter(at, t)
	pl.checkUnique(at, t)
}

func (pl *Plan) deletedTopic(name string) *catalog.Topic {
	for _, t := range pl.To.Topics {
		if t.ServiceNumber == pl.Service.Number && t.Name == name {
			return t
		}
	}
	return nil
}

// mergeRules sets the rules: those in the document in its order, then the other existing ones in
// their order, unless the mode of the spec says otherwise.
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

// sameOrder reports whether the rules in both lists have the same order.
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

// checkCadence refuses a cadence that the topic's subscriptions cannot have.
func (pl *Plan) checkCadence(at string, t *catalog.Topic) {
	if err := t.CheckCadence(t.Cadence); err != nil {
		pl.fail(at, err)
	}
}

// checkFilter refuses a filter of a topic with a digest: the run of a digest reports the events of several topics, whose
// filters could differ.
func (pl *Plan) checkFilter(at string, t *catalog.Topic) {
	if t.Filter != "" && !t.Digest.IsZero() {
		pl.fail(at, inputerror.Invalid("/filter", "remove filter or digest; a formatter can return an error for a recipient who must not get the digest",
			"topic %s has a digest, so it cannot have a filter", inputerror.Quote(t.Name)))
	}
}

// checkUnique refuses messages for each subscription of a topic with a digest, which merges the events of a recipient.
func (pl *Plan) checkUnique(at string, t *catalog.Topic) {
	if t.PerSubscription && !t.Digest.IsZero() {
		pl.fail(at, inputerror.Invalid("/unique", "remove digest, or use unique: recipient",
			"topic %s has a digest, so it cannot have unique: subscription", inputerror.Quote(t.Name)))
	}
}

// checkDigestKey refuses a key that no event of the topic can have.
func (pl *Plan) checkDigestKey(at string, t *catalog.Topic) {
	if t.Digest.Key == "" {
		return
	}
	if err := pl.opt.CheckConditions(condition.Definition{Schema: t.Schema, Key: t.Digest.Key}); err != nil {
		if e := inputerror.WithPrefix("", err); strings.HasPrefix(e.Pointer, "/key") {
			pl.fail(at+"/digest", e)
		}
	}
}

// dryRunDigests checks each template against all topics whose digests use it, if the document
// contains one of them, and notes the templates that are used.
func (pl *Plan) dryRunDigests(used map[string]bool) {
	topics := map[string][]*catalog.Topic{}
	for _, t := range catalog.SortedValues(pl.Service.Topics) {
		if t.Digest.Template != "" {
			topics[t.Digest.Template] = append(topics[t.Digest.Template], t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		all, src := topics[name], pl.sourceOf(name)
		if src == nil {
			continue
		}
		used[name] = true
		named := slices.ContainsFunc(all, func(t *catalog.Topic) bool { return pl.Document.Topics[t.Name] != nil })
		if !named && !pl.namesContent(name) {
			continue
		}
		var schemas []json.RawMessage
		var names []string
		for _, t := range all {
			schemas, names = append(schemas, schemaOf(t)), append(names, t.Name)
		}
		if err := pl.opt.DryRunDigest(src, schemas); err != nil {
			pl.failTemplateIn("in digests of "+strings.Join(names, ", "), err)
		}
	}
}

// checkReserved refuses a new topic with a reserved name that Fanfare does not define, and a
// reserved topic with a different schema or key.
func (pl *Plan) checkReserved(at, name string, spec *document.TopicSpec) bool {
	if !fanfare.ReservedTopic(name) || pl.Service.Topics[name] != nil && spec.Schema == nil && spec.Key == "" {
		return true
	}
	switch {
	case !slices.Contains(fanfare.ReservedTopics, name):
		pl.fail(at, inputerror.Invalid("", "choose another name, or use one of "+strings.Join(fanfare.ReservedTopics, ", "), "topic names that begin with %s are reserved, and Fanfare has no topic %s", fanfare.ReservedPrefix, inputerror.Quote(name)))
	case spec.Schema != nil:
		pl.fail(at, inputerror.Invalid("/schema", "omit it", "the schema of topic %s is defined by Fanfare and cannot be changed", name))
	case spec.Key != "":
		pl.fail(at, inputerror.Invalid("/key", "omit it", "topic %s is defined by Fanfare and cannot have a key", name))
	default:
		return true
	}
	return false
}
