package registry

import (
	"bytes"
	"maps"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/rawjson"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store/control"
)

// A subscriptionChange is a checked put with everything that the writer needs to decide on it.
type subscriptionChange struct {
	put         *people.SubscriptionPut
	service     uint32 // number of the service
	topic       *catalog.Topic
	channel     *catalog.Channel
	rule        uint32 // number, or 0
	filter      uint32 // number; 0 although put has a text: not stored yet
	kind        uint8
	partition   uint8
	address     string // normal form
	addressHash uint64
	idHash      uint64 // only with a client's id
	params      []byte // canonical, or nil
	cadence     cadence.Cadence
	consent     *people.Consent
	cost        fanfare.Cost
	addedCost   int64 // the cost that others do not cause already

	// The expected rows, which are read ahead.
	subscriber, subscription fanfare.RowID

	direct  bool  // the recipient of one direct message: no subscription is made
	err     error // rejected: the writer skips it
	place   fanfare.RowID
	created bool

	replaced         fanfare.RowID // the subscription that had the id and has ended, or 0
	paused           fanfare.RowID // the subscription that it pauses, or 0
	subscriberFields []string      // fields of the subscriber that changed
}

// result returns the result for the caller.
func (w *subscriptionChange) result() people.PutResult {
	result := people.PutResult{Created: w.created, Cost: w.cost, Added: w.addedCost, Err: w.err}
	switch {
	case w.err != nil:
	case w.put.ID != "":
		result.ID = w.put.ID
	default:
		result.ID = fanfare.SubscriptionID(w.place)
	}
	return result
}

// check fills w from p, or sets w.err.
func (r *Registry) check(svc *catalog.ServiceSnapshot, p *people.SubscriptionPut, w *subscriptionChange) {
	*w = subscriptionChange{put: p, service: svc.Number}
	if w.err = r.checkNames(svc, p, w); w.err != nil {
		return
	}
	if w.err = r.checkAddress(svc, p, w); w.err != nil {
		return
	}
	if w.err = people.CheckFields(&r.fieldCache, p); w.err != nil {
		return
	}
	if len(p.Attributes) > 0 {
		if w.err = r.Snapshot().SubscriberSchemas.CheckAttributes(svc.Number, p.Attributes); w.err != nil {
			return
		}
	}
	if w.err = r.checkCondition(p, w); w.err != nil {
		return
	}
	if w.err = r.checkCadence(p, w); w.err != nil {
		return
	}
	if w.err = checkConsent(p, w); w.err != nil {
		return
	}
	if p.Subscriber != "" {
		if c := r.candidates(svc.Number, p.Subscriber); len(c) > 0 {
			w.subscriber = c[len(c)-1]
		}
	} else {
		w.addressHash = r.hash.Address(svc.Number, w.kind, w.address)
		w.subscriber, _ = r.addresses.Lookup(w.addressHash)
	}
	if p.ID != "" {
		w.idHash = r.hash.ClientID(svc.Number, p.ID)
		w.subscription, _ = r.identities.Lookup(w.idHash)
	} else if !w.topic.PerSubscription && w.subscriber != 0 && p.Subscriber == "" && (w.filter != 0 || p.Filter == "") {
		natural := control.SubscriptionRecord{Subscriber: w.subscriber, Topic: w.topic.Number, Channel: w.channel.Number,
			Filter: w.filter, Rule: w.rule, Params: w.params}
		w.subscription, _ = r.identities.Lookup(r.hash.NaturalKey(&natural))
	}
}

func (r *Registry) checkNames(svc *catalog.ServiceSnapshot, p *people.SubscriptionPut, w *subscriptionChange) error {
	var ok bool
	if w.topic, ok = svc.Topics[p.Topic]; !ok {
		if p.Topic == "" {
			return inputerror.Invalid("/topic", inputerror.DidYouMean("", maps.Keys(svc.Topics), "apply a topic first"), "topic is missing")
		}
		return inputerror.Invalid("/topic", inputerror.DidYouMean(p.Topic, maps.Keys(svc.Topics), "the service has no topics: apply a topic first"), "unknown topic %s", inputerror.Quote(p.Topic))
	}
	if w.channel, ok = svc.Channels[p.Channel]; !ok {
		if p.Channel == "" {
			return inputerror.Invalid("/channel", inputerror.DidYouMean("", maps.Keys(svc.Channels), "apply a channel first"), "channel is missing")
		}
		return inputerror.Invalid("/channel", inputerror.DidYouMean(p.Channel, maps.Keys(svc.Channels), "the service has no channels: apply a channel first"), "unknown channel %s", inputerror.Quote(p.Channel))
	}
	return people.CheckID(p.ID)
}

func (r *Registry) checkAddress(svc *catalog.ServiceSnapshot, p *people.SubscriptionPut, w *subscriptionChange) error {
	w.kind = w.channel.AddressKind()
	if p.Subscriber != "" {
		if _, ours := people.ParseSubscriberID(p.Subscriber); !ours {
			if err := people.CheckSubscriberID(p.Subscriber); err != nil {
				return inputerror.WithPointer("/subscriber", err)
			}
		}
		if p.To == "" {
			return nil // the default address of the subscriber
		}
	}
	if p.To == "" {
		return inputerror.Invalid("/to", "set \"to\" to an address, or set subscriber", "to is missing")
	}
	if strings.ContainsAny(p.To, "\r\n\x00") {
		return inputerror.Invalid("/to", "", "to contains a line break or a zero byte")
	}
	address, err := r.normal(w.kind, p.To)
	if err != nil {
		return inputerror.Invalid("/to", "", "%s", people.AddressProblem(p.To, " of the channel", err))
	}
	if err := w.channel.CheckAddress(address); err != nil {
		return err
	}
	w.address = address
	w.partition = uint8(people.PartitionOf(svc.Name, w.kind, address))
	return nil
}

// checkCadence parses the cadence of the put.
func (r *Registry) checkCadence(p *people.SubscriptionPut, w *subscriptionChange) (err error) {
	if p.Cadence == "" {
		return nil
	}
	if w.cadence, err = r.fieldCache.Cadences.Check(p.Cadence, cadence.Parse); err != nil {
		return inputerror.WithPointer("/cadence", err)
	}
	return w.topic.CheckCadence(w.cadence)
}

func (r *Registry) checkCondition(p *people.SubscriptionPut, w *subscriptionChange) error {
	hasParams := len(p.Params) > 0 && !bytes.Equal(p.Params, []byte("null"))
	switch {
	case p.Filter != "" && p.Rule != "":
		return inputerror.Invalid("/rule", "set either filter or rule", "a subscription has a filter or a rule, not both")
	case p.Rule != "":
		return r.checkRule(p, w)
	case hasParams:
		return inputerror.Invalid("/params", "set rule to the name of the rule", "params need a rule")
	case p.Filter == "":
		return nil
	case len(p.Filter) > people.MaxFilterBytes:
		return inputerror.TooLarge("/filter", len(p.Filter), people.MaxFilterBytes)
	}
	t := w.topic
	cost, err := t.CheckedFilters.Check(p.Filter, func(text string) (fanfare.Cost, error) { return r.opt.Conditions.FilterCost(t.ConditionKey(), text) })
	if err != nil {
		return inputerror.WithPrefix("", err)
	}
	w.cost, w.filter = cost, r.filters.Number(p.Filter)
	return nil
}

func (r *Registry) checkRule(p *people.SubscriptionPut, w *subscriptionChange) error {
	rule := w.topic.Rule(p.Rule)
	if rule == nil {
		return inputerror.Invalid("/rule", inputerror.DidYouMean(p.Rule, w.topic.RuleNames(), "the topic has no rules: use a filter"),
			"topic %s has no rule %s", inputerror.Quote(p.Topic), inputerror.Quote(p.Rule))
	}
	if len(p.Params) > people.MaxParamsBytes {
		return inputerror.TooLarge("/params", len(p.Params), people.MaxParamsBytes)
	}
	if len(p.Params) > 0 && !people.IsObject(p.Params) {
		return inputerror.Invalid("/params", "", "params must be a JSON object")
	}
	cost, err := r.opt.Conditions.ParamsCost(w.topic.ConditionKey(), p.Rule, p.Params)
	if err != nil {
		return inputerror.WithPrefix("", err)
	}
	w.cost, w.rule = cost, rule.Number
	w.params = rawjson.Canonical(p.Params)
	return nil
}

// A plannedCost is the matching cost that a group adds to a topic.
type plannedCost struct {
	nanos   int64
	filters map[string]struct{} // already counted
}

// checkBudget rejects a change that raises the matching cost of an event above the budget of the
// service. Existing conditions add no cost, and remain if the budget is lowered.
func (g *group) checkBudget(w *subscriptionChange) error {
	w.addedCost = 0
	if w.cost.Indexed() || w.put.State == people.StatePaused {
		return nil
	}
	kept, err := g.keepsCondition(w)
	if err != nil || kept || w.put.Filter != "" && (g.isPlanned(w) || g.w.r.opt.Conditions.HasFilter(w.topic.ConditionKey(), w.put.Filter)) {
		return err
	}
	budget := g.w.r.Snapshot().Services[w.topic.Service].Budget()
	load := g.topicCost(w)
	if f := g.w.committing; f != nil && load+w.cost.Nanos > int64(budget) {
		// The index may have a part of the group that is being committed, which would count twice.
		if g.w.waitCommit(); g.aborted {
			return errAborted
		}
		load = g.topicCost(w)
	}
	if load+w.cost.Nanos > int64(budget) {
		return overBudgetError(w, load, budget)
	}
	w.addedCost = w.cost.Nanos
	g.addPlanned(w)
	return nil
}

// keepsCondition reports whether a change keeps the condition of its subscription and does not
// resume it.
func (g *group) keepsCondition(w *subscriptionChange) (bool, error) {
	place := w.subscription
	if w.put.ID != "" {
		var err error
		if place, err = g.find(w.idHash, w.topic.ServiceNumber, &control.SubscriptionRecord{ID: w.put.ID}); err != nil {
			return false, err
		}
	}
	if place == 0 {
		return false, nil
	}
	s, err := g.subscription(place)
	if err != nil {
		return false, g.w.r.readError(err)
	}
	return s != nil && !s.Ended && (!s.Paused || w.put.State != people.StateActive) && s.Topic == w.topic.Number && s.Rule == w.rule && g.w.r.filters.Is(s.Filter, w.put.Filter) && bytes.Equal(s.Params, w.params), nil
}

// topicCost returns the matching cost of an event of the topic, with all decided changes.
func (g *group) topicCost(w *subscriptionChange) int64 {
	load := g.w.r.opt.Conditions.UnindexedCost(w.topic.ConditionKey()) + g.planned[w.topic.Number].nanos
	if f := g.w.committing; f != nil {
		load += f.planned[w.topic.Number].nanos
	}
	return load
}

// isPlanned reports whether the decided changes contain the filter.
func (g *group) isPlanned(w *subscriptionChange) bool {
	_, mine := g.planned[w.topic.Number].filters[w.put.Filter]
	if f := g.w.committing; f != nil && !mine {
		_, mine = f.planned[w.topic.Number].filters[w.put.Filter]
	}
	return mine
}

// addPlanned counts the condition of a change.
func (g *group) addPlanned(w *subscriptionChange) {
	if g.planned == nil {
		g.planned = map[uint32]plannedCost{}
	}
	p := g.planned[w.topic.Number]
	if p.nanos += w.cost.Nanos; w.put.Filter != "" {
		if p.filters == nil {
			p.filters = map[string]struct{}{}
		}
		p.filters[w.put.Filter] = struct{}{}
	}
	g.planned[w.topic.Number] = p
}

func overBudgetError(w *subscriptionChange, load int64, budget time.Duration) error {
	at := "/filter"
	if w.rule != 0 {
		at = "/rule"
	}
	return inputerror.Invalid(at, "add a comparison that the index supports, such as an equality, or use a filter that already exists; matching_budget of the service sets the budget",
		"the condition would take about %d ns for each event of topic %s, because %s; with the %d ns of other conditions this exceeds the budget of %s",
		w.cost.Nanos, inputerror.Quote(w.topic.Name), w.cost.Why, load, catalog.Duration(budget))
}
