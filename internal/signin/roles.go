package signin

import (
	"maps"
	"slices"
	"sync/atomic"

	"fanfare.dev/fanfare/internal/catalog"
)

// Roles are the current roles of people: those of the settings, which are for all services, and those of the configuration of each service. A change of
// the configuration takes effect at the next request. They are safe for concurrent use.
type Roles struct {
	issuers  []string
	grants   []catalog.RoleGrant // in all services
	snapshot func() *catalog.Snapshot
	index    atomic.Pointer[roleIndex]
}

// A roleIndex has the grants of one configuration.
type roleIndex struct {
	of     *catalog.Snapshot
	rights map[statement][]right
	claims map[string][]string // names, by issuer
}

type statement struct {
	issuer string
	catalog.Claim
}

type right struct {
	service string // "": all
	roles   catalog.Roles
}

// NewRoles returns the roles of people of some issuers, with the grants for all services and the function that returns the current configuration.
func NewRoles(issuers []string, grants []catalog.RoleGrant, snapshot func() *catalog.Snapshot) *Roles {
	return &Roles{issuers: issuers, grants: grants, snapshot: snapshot}
}

// current returns the index of the current configuration.
func (r *Roles) current() *roleIndex {
	now := r.snapshot()
	if index := r.index.Load(); index != nil && index.of == now {
		return index
	}
	index := &roleIndex{of: now, rights: map[statement][]right{}, claims: map[string][]string{}}
	add := func(service string, grants []catalog.RoleGrant) {
		for _, g := range grants {
			role, ok := catalog.ParseRole(g.Role)
			if !ok || !slices.Contains(r.issuers, g.Issuer) {
				continue // nobody can sign in with another issuer
			}
			stated := statement{g.Issuer, catalog.Claim{Name: g.Claim, Value: g.Value}}
			index.rights[stated] = append(index.rights[stated], right{service, role})
			if !slices.Contains(index.claims[g.Issuer], g.Claim) {
				index.claims[g.Issuer] = append(index.claims[g.Issuer], g.Claim)
			}
		}
	}
	add("", r.grants)
	for _, name := range slices.Sorted(maps.Keys(now.Services)) {
		add(name, now.Services[name].Roles)
	}
	r.index.Store(index)
	return index
}

// Claims lists the names of the claims of an issuer on which roles depend.
func (r *Roles) Claims(issuer string) []string { return r.current().claims[issuer] }

// Rights returns the roles of a person with claims of an issuer.
func (r *Roles) Rights(issuer string, claims []catalog.Claim) (rights catalog.Rights) {
	index := r.current()
	for _, c := range claims {
		for _, of := range index.rights[statement{issuer, c}] {
			if of.service == "" {
				rights.All |= of.roles
				continue
			}
			if rights.Services == nil {
				rights.Services = map[string]catalog.Roles{}
			}
			rights.Services[of.service] |= of.roles
		}
	}
	return rights
}

// Relevant selects the claims of a person on which roles depend now.
func (r *Roles) Relevant(issuer string, values func(claim string) []string) (list []catalog.Claim) {
	index := r.current()
	for _, name := range index.claims[issuer] {
		for _, value := range values(name) {
			claim := catalog.Claim{Name: name, Value: value}
			if index.rights[statement{issuer, claim}] != nil && !slices.Contains(list, claim) {
				list = append(list, claim)
			}
		}
	}
	return list
}
