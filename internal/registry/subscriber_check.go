package registry

import (
	"fmt"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
)

// Limits of one subscriber.
const (
	maxAddresses  = 20
	maxLabelBytes = 64
)

// checkSubscriberID allows what checkID allows, and no id that looks like one of
// Fanfare's own.
func checkSubscriberID(id string) error {
	if id == "" {
		return inputerror.Invalid("/id", "", "id is missing")
	}
	if strings.HasPrefix(id, subscriberPrefix) {
		return inputerror.Invalid("/id", "choose one that does not begin with "+subscriberPrefix, "id %s is reserved", inputerror.Quote(id))
	}
	return checkID(id)
}

// An addressWant is an address that was found good.
type addressWant struct {
	kind      uint8
	partition int
	address   string // normal form
	hash      uint64
	label     string
}

// checkSubscriber checks all of p, and returns its addresses in normal form.
func (r *Registry) checkSubscriber(svc *catalog.ServiceSnapshot, p *SubscriberPut) ([]addressWant, error) {
	if len(p.Addresses) > maxAddresses {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/addresses", Message: fmt.Sprintf("%d addresses, more than %d", len(p.Addresses), maxAddresses)}
	}
	if string(p.Attributes) == "null" {
		p.Attributes = nil
	}
	free := Put{Locale: p.Locale, TimeZone: p.TimeZone, Attributes: p.Attributes}
	if err := checkFreeFields(&r.known, &free); err != nil {
		return nil, err
	}
	if err := r.Snapshot().SubscriberSchemas.CheckAttributes(svc.Number, p.Attributes); err != nil {
		return nil, err
	}
	wants := make([]addressWant, 0, len(p.Addresses))
	for i := range p.Addresses {
		w, err := r.checkOneAddress(svc, &p.Addresses[i])
		if err != nil {
			return nil, inputerror.WithPrefix(fmt.Sprintf("/addresses/%d", i), err)
		}
		for _, other := range wants {
			if other.kind == w.kind && other.address == w.address {
				return nil, inputerror.Invalid(fmt.Sprintf("/addresses/%d/address", i), "", "the address stands twice")
			}
		}
		wants = append(wants, w)
	}
	return wants, nil
}

func (r *Registry) checkOneAddress(svc *catalog.ServiceSnapshot, a *Address) (w addressWant, err error) {
	if w.kind = catalog.ParseAddressKind(a.Kind); w.kind == 0 {
		return w, inputerror.Invalid("/kind", "use mail or url", "unknown kind of address %s", inputerror.Quote(a.Kind))
	}
	if a.Address == "" {
		return w, inputerror.Invalid("/address", "", "address is missing")
	}
	if len(a.Label) > maxLabelBytes || strings.ContainsAny(a.Label, "\r\n\x00") {
		return w, inputerror.Invalid("/label", "", "a label is one line of at most %d bytes", maxLabelBytes)
	}
	if strings.ContainsAny(a.Address, "\r\n\x00") {
		return w, inputerror.Invalid("/address", "", "address has a line break or a zero byte in it")
	}
	if w.address, err = r.normal(w.kind, a.Address); err != nil {
		return w, inputerror.Invalid("/address", "", "%s", noAddress(a.Address, "", err))
	}
	w.label = a.Label
	w.partition = partitionOf(svc.Name, w.kind, w.address)
	w.hash = r.hash.address(svc.Number, w.kind, w.address)
	return w, nil
}
