package registry

import (
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/store/control"
)

// BounceOf returns the record of an address of a service, without what came back.
func (r *Registry) BounceOf(service, address string) (control.BounceRecord, error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return control.BounceRecord{}, err
	}
	kind := addresskind.OfAddress(address)
	normal, err := r.normal(kind, address)
	if err != nil {
		return control.BounceRecord{}, inputerror.Invalid("", "", "%s", people.AddressProblem(address, "", err))
	}
	s := r.suppressions.NewRecord(svc.Number, kind, normal)
	return control.BounceRecord{Service: s.Service, AddressKind: s.Kind, Hash: s.Hash}, nil
}
