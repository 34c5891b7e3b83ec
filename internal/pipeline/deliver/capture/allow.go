package capture

import (
	"net/url"
	"strings"
)

// Allow is to whom messages may leave for real: addresses, domains written as
// @example.org, and hosts of webhooks. The zero Allow has nobody.
type Allow map[string]bool

// NewAllow returns the list as it is configured.
func NewAllow(list []string) Allow {
	all := Allow{}
	for _, one := range list {
		all[strings.ToLower(one)] = true
	}
	return all
}

// Has reports whether a message to an address may leave.
func (a Allow) Has(to string) bool {
	to = strings.ToLower(to)
	if strings.Contains(to, "://") {
		u, err := url.Parse(to)
		return err == nil && u.Hostname() != "" && (a[u.Hostname()] || a[u.Host])
	}
	at := strings.LastIndexByte(to, '@')
	return at >= 0 && (a[to] || a[to[at:]])
}
