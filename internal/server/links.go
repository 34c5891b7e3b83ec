package server

import (
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/registry"
)

// returning reports whether a channel has return addresses.
func returning(people *registry.Registry) bool {
	return slices.ContainsFunc(people.Channels(), func(c *catalog.Channel) bool { return c.Returns != "" })
}

// takesBack reports whether mail to a domain of return addresses comes in here.
func (l *loader) takesBack(domain string) bool {
	return slices.ContainsFunc(l.domains, func(d string) bool { return strings.EqualFold(d, domain) })
}
