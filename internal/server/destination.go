package server

import (
	"strings"

	"fanfare.dev/fanfare/internal/mail/address"

	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/registry"
)

// destination names who will answer for an address: whose limits count, and whose
// answers say how much more may be sent. A file has none.
func destination(channel *registry.Channel, to string) string {
	switch channel.Driver {
	case "file":
		return ""
	case "webhook":
		return address.HostPort(to)
	}
	return strings.ToLower(to[strings.LastIndexByte(to, '@')+1:])
}

// destinationsOf is what is configured for the destinations of a channel.
func destinationsOf(c *registry.Channel) deliver.Destinations {
	limit := func(d registry.DestinationSettings) deliver.DestinationLimit {
		return deliver.DestinationLimit{Rate: d.Rate.PerSecond(), Connections: d.Connections}
	}
	of := deliver.Destinations{Each: limit(c.Destinations), Only: make(map[string]deliver.DestinationLimit, len(c.Destinations.Only))}
	for name, own := range c.Destinations.Only {
		of.Only[name] = limit(own)
	}
	return of
}
