package registry

import (
	"cmp"
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/store/control"
)

// ChannelsIn returns the channels among records as a store keeps them, services
// first, by service and name: for who looks at a store without opening a registry.
func ChannelsIn(records []control.ConfigRecord) ([]*Channel, error) {
	s := newSnapshot()
	for i := range records {
		c := &records[i]
		switch c.Kind {
		case kindService:
			svc := newService(c.Number, c.Name)
			s.services[c.Name], s.names[c.Number] = svc, c.Name
		case kindChannel:
			svc := s.services[s.names[c.Service]]
			if svc == nil || c.Deleted {
				continue
			}
			if err := loadChannel(s, svc, c); err != nil {
				return nil, err
			}
		}
	}
	all := slices.Collect(maps.Values(s.channels))
	slices.SortFunc(all, func(a, b *Channel) int { return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}
