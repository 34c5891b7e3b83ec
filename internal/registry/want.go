package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/language"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people/rawjson"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store/control"
)

// Limits of one Put, in bytes.
const (
	maxIDBytes         = 128
	maxFilterBytes     = 4 << 10
	maxParamsBytes     = 4 << 10
	maxDataBytes       = 16 << 10
	maxAttributesBytes = 16 << 10
)

// A want is a Put that was found good: what the writer needs to decide on it.
type want struct {
	put         *Put
	service     uint32 // its number
	topic       *catalog.Topic
	channel     *catalog.Channel
	rule        uint32 // number, or 0
	filter      uint32 // number; 0 with a text in put: not interned yet
	kind        uint8
	partition   uint8
	address     string // normal form
	addressHash uint64
	idHash      uint64 // only with a client's id
	params      []byte // canonical, or nil
	cadence     cadence.Cadence
	consent     *Consent
	cost        fanfare.Cost
	added       int64 // of it, where others do not have the condition

	// Where the rows seem to be, so that they can be read before their turn.
	subscriber, subscription fanfare.RowID

	sent    bool  // somebody is to be sent one message, and nothing is subscribed
	err     error // refused: the writer passes it by
	place   fanfare.RowID
	created bool

	replaced fanfare.RowID // what had the id before and has ended for it, or 0
	silenced fanfare.RowID // what is paused by it, or 0
	touched  []string      // fields of the subscriber that changed
}

// result is what came of it.
func (w *want) result() PutResult {
	result := PutResult{Created: w.created, Cost: w.cost, Added: w.added, Err: w.err}
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
func (r *Registry) check(svc *catalog.ServiceSnapshot, p *Put, w *want) {
	*w = want{put: p, service: svc.Number}
	if w.err = r.checkNames(svc, p, w); w.err != nil {
		return
	}
	if w.err = r.checkAddress(svc, p, w); w.err != nil {
		return
	}
	if w.err = checkFreeFields(&r.known, p); w.err != nil {
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
		w.addressHash = r.hash.address(svc.Number, w.kind, w.address)
		w.subscriber, _ = r.addresses.Lookup(w.addressHash)
	}
	if p.ID != "" {
		w.idHash = r.hash.clientID(svc.Number, p.ID)
		w.subscription, _ = r.identities.Lookup(w.idHash)
	} else if w.subscriber != 0 && p.Subscriber == "" && (w.filter != 0 || p.Filter == "") {
		natural := control.SubscriptionRecord{Subscriber: w.subscriber, Topic: w.topic.Number, Channel: w.channel.Number,
			Filter: w.filter, Rule: w.rule, Params: w.params}
		w.subscription, _ = r.identities.Lookup(r.hash.natural(&natural))
	}
}

func (r *Registry) checkNames(svc *catalog.ServiceSnapshot, p *Put, w *want) error {
	var ok bool
	if w.topic, ok = svc.Topics[p.Topic]; !ok {
		if p.Topic == "" {
			return inputerror.Invalid("/topic", inputerror.DidYouMean("", maps.Keys(svc.Topics), "apply one first"), "topic is missing")
		}
		return inputerror.Invalid("/topic", inputerror.DidYouMean(p.Topic, maps.Keys(svc.Topics), "the service has no topics, apply one first"), "unknown topic %s", inputerror.Quote(p.Topic))
	}
	if w.channel, ok = svc.Channels[p.Channel]; !ok {
		if p.Channel == "" {
			return inputerror.Invalid("/channel", inputerror.DidYouMean("", maps.Keys(svc.Channels), "apply one first"), "channel is missing")
		}
		return inputerror.Invalid("/channel", inputerror.DidYouMean(p.Channel, maps.Keys(svc.Channels), "the service has no channels, apply one first"), "unknown channel %s", inputerror.Quote(p.Channel))
	}
	return checkID(p.ID)
}

// checkID allows letters, digits and . _ : @ / - and no id that looks like one
// of Fanfare's own.
func checkID(id string) error {
	if len(id) > maxIDBytes {
		return inputerror.TooLarge("/id", len(id), maxIDBytes)
	}
	for i := range len(id) {
		if !idByte[id[i]] {
			return inputerror.Invalid("/id", "use letters, digits and . _ : @ / -", "id has the character %q", id[i])
		}
	}
	if fanfare.ReservedID(id) {
		return inputerror.Invalid("/id", "choose one that does not begin with evt-, dlv- or sub-", "id %s is reserved", inputerror.Quote(id))
	}
	return nil
}

var idByte = func() (t [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@/-" {
		t[c] = true
	}
	return t
}()

func (r *Registry) checkAddress(svc *catalog.ServiceSnapshot, p *Put, w *want) error {
	w.kind = catalog.AddressKindOf(w.channel.Driver)
	if p.Subscriber != "" {
		if _, ours := ParseSubscriberID(p.Subscriber); !ours {
			if err := checkSubscriberID(p.Subscriber); err != nil {
				return inputerror.WithPointer("/subscriber", err)
			}
		}
		if p.To == "" {
			return nil // the subscriber's default
		}
	}
	if p.To == "" {
		return inputerror.Invalid("/to", "give an address, or a subscriber", "to is missing")
	}
	if strings.ContainsAny(p.To, "\r\n\x00") {
		return inputerror.Invalid("/to", "", "to has a line break or a zero byte in it")
	}
	address, err := r.normal(w.kind, p.To)
	if err != nil {
		return inputerror.Invalid("/to", "", "%s", noAddress(p.To, " of the channel", err))
	}
	if err := w.channel.CheckAddress(address); err != nil {
		return err
	}
	w.address = address
	w.partition = uint8(partitionOf(svc.Name, w.kind, address))
	return nil
}

// noAddress says why a text is no address; some reasons begin with the text itself.
func noAddress(text, of string, err error) string {
	why := reason(err)
	if strings.HasPrefix(why, inputerror.Quote(text)) {
		return why
	}
	return inputerror.Quote(text) + " is not an address" + of + ": " + why
}

// reason is the message of an error alone, where it has more.
func reason(err error) string {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

func checkFreeFields(known *knownNames, p *Put) error {
	if p.State != "" && p.State != stateActive && p.State != statePaused {
		return inputerror.Invalid("/state", "use active or paused; to end it, delete it", "state must not be %s", inputerror.Quote(p.State))
	}
	if err := checkObject("/data", p.Data, maxDataBytes, p.decoded); err != nil {
		return err
	}
	if err := checkObject("/attributes", p.Attributes, maxAttributesBytes, p.decoded); err != nil {
		return err
	}
	if p.Locale != "" {
		if _, err := known.locales.Check(p.Locale, checkLocale); err != nil {
			return err
		}
	}
	if p.TimeZone != "" {
		_, err := known.zones.Check(p.TimeZone, checkTimeZone)
		return err
	}
	return nil
}

// checkCadence reads the cadence that the put names.
func (r *Registry) checkCadence(p *Put, w *want) (err error) {
	if p.Cadence == "" {
		return nil
	}
	if w.cadence, err = r.known.cadences.Check(p.Cadence, cadence.Parse); err != nil {
		return inputerror.WithPointer("/cadence", err)
	}
	return w.topic.CheckCadence(w.cadence)
}

// knownNames are locales, time zones and cadences that were found good.
type knownNames struct {
	locales, zones catalog.CheckedTexts[struct{}]
	cadences       catalog.CheckedTexts[cadence.Cadence]
}

func checkLocale(s string) (found struct{}, err error) {
	if _, err := language.Parse(s); err != nil || len(s) > 64 {
		return found, inputerror.Invalid("/locale", "use a language tag such as en, pt-BR or zh-Hant", "unknown locale %s", inputerror.Quote(s))
	}
	return found, nil
}

func checkTimeZone(s string) (found struct{}, err error) {
	if _, err := time.LoadLocation(s); err != nil || s == "Local" {
		return found, inputerror.Invalid("/time_zone", "use a name such as Europe/Berlin or America/Vancouver", "unknown time zone %s", inputerror.Quote(s))
	}
	return found, nil
}

// checkObject is for what a client wrote; valid tells that it is known to be JSON.
func checkObject(pointer string, b json.RawMessage, limit int, valid bool) error {
	switch {
	case len(b) == 0:
		return nil
	case len(b) > limit:
		return inputerror.TooLarge(pointer, len(b), limit)
	case !isObject(b):
		return inputerror.Invalid(pointer, "", "%s must be a JSON object", pointer[1:])
	case !valid && !json.Valid(b):
		return inputerror.Invalid(pointer, "", "%s is not valid JSON", pointer[1:])
	case !utf8.Valid(b):
		return inputerror.Invalid(pointer, "", "%s is not valid UTF-8", pointer[1:])
	}
	return nil
}

func isObject(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '{'
}

func (r *Registry) checkCondition(p *Put, w *want) error {
	hasParams := len(p.Params) > 0 && !bytes.Equal(p.Params, []byte("null"))
	switch {
	case p.Filter != "" && p.Rule != "":
		return inputerror.Invalid("/rule", "give the one or the other", "a subscription has a filter or a rule, not both")
	case p.Rule != "":
		return r.checkRule(p, w)
	case hasParams:
		return inputerror.Invalid("/params", "name the rule that they belong to", "params without a rule")
	case p.Filter == "":
		return nil
	case len(p.Filter) > maxFilterBytes:
		return inputerror.TooLarge("/filter", len(p.Filter), maxFilterBytes)
	}
	t := w.topic
	cost, err := t.CheckedFilters.Check(p.Filter, func(text string) (fanfare.Cost, error) { return r.opt.Conditions.FilterCost(t.ConditionKey(), text) })
	if err != nil {
		return inputerror.WithPrefix("", err)
	}
	w.cost, w.filter = cost, r.filters.number(p.Filter)
	return nil
}

func (r *Registry) checkRule(p *Put, w *want) error {
	rule := w.topic.Rule(p.Rule)
	if rule == nil {
		return inputerror.Invalid("/rule", inputerror.DidYouMean(p.Rule, w.topic.RuleNames(), "the topic has no rules, use a filter"),
			"topic %s has no rule %s", inputerror.Quote(p.Topic), inputerror.Quote(p.Rule))
	}
	if len(p.Params) > maxParamsBytes {
		return inputerror.TooLarge("/params", len(p.Params), maxParamsBytes)
	}
	if len(p.Params) > 0 && !isObject(p.Params) {
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
