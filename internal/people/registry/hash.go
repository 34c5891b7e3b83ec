package registry

import (
	"fanfare.dev/fanfare/internal/people/addresskind"
)

// normal returns the normal form of an address.
func (r *Registry) normal(kind uint8, address string) (string, error) {
	switch kind {
	case addresskind.URL:
		return r.opt.ParseURL(address)
	case addresskind.Phone:
		return r.opt.ParsePhone(address)
	}
	return r.opt.ParseAddress(address)
}
