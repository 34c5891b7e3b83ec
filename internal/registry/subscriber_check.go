package registry

import (
	"fmt"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
)

// An addressWant is an address that was found good.
type addressWant struct {
	kind      uint8
	partition int
	address   string // normal form
	hash      uint64
	label     string
}

// checkSubscriber checks all of p, and returns its addresses in normal form.
func (r *Registry) checkSubscriber(svc *catalog.ServiceSnapshot, p *people.SubscriberPut) ([]addressWant, error) {
	if len(p.Addresses) > people.MaxAddresses {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/addresses", Message: fmt.Sprintf("%d addresses, more than %d", len(p.Addresses), people.MaxAddresses)}
	}
	if string(p.Attributes) == "null" {
		p.Attributes = nil
	}
	free := people.SubscriptionPut{Locale: p.Locale, TimeZone: p.TimeZone, Attributes: p.Attributes}
	if err := people.CheckFields(&r.known, &free); err != nil {
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

func (r *Registry) checkOneAddress(svc *catalog.ServiceSnapshot, a *people.Address) (w addressWant, err error) {
	if w.kind = addresskind.Parse(a.Kind); w.kind == 0 {
		return w, inputerror.Invalid("/kind", "use mail or url", "unknown kind of address %s", inputerror.Quote(a.Kind))
	}
	if a.Address == "" {
		return w, inputerror.Invalid("/address", "", "address is missing")
	}
	if len(a.Label) > people.MaxLabelBytes || strings.ContainsAny(a.Label, "\r\n\x00") {
		return w, inputerror.Invalid("/label", "", "a label is one line of at most %d bytes", people.MaxLabelBytes)
	}
	if strings.ContainsAny(a.Address, "\r\n\x00") {
		return w, inputerror.Invalid("/address", "", "address has a line break or a zero byte in it")
	}
	if w.address, err = r.normal(w.kind, a.Address); err != nil {
		return w, inputerror.Invalid("/address", "", "%s", people.AddressProblem(a.Address, "", err))
	}
	w.label = a.Label
	w.partition = partitionOf(svc.Name, w.kind, w.address)
	w.hash = r.hash.address(svc.Number, w.kind, w.address)
	return w, nil
}
