package registry

import (
	"fmt"

	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/store/control"
)

// What the audit calls people and what they want.
const (
	kindSubscriber   = "subscriber"
	kindSubscription = "subscription"
)

// loadConfig puts a kept record into s. Services come first.
func (r *Registry) loadConfig(s *catalog.Snapshot, c *control.ConfigRecord) error {
	switch c.Kind {
	case catalog.KindService:
		return catalog.LoadService(s, c)
	case catalog.KindKey:
		return r.loadKey(s, c)
	case catalog.KindSwitch:
		return r.loadSwitch(c)
	case kindRate:
		return r.loadRate(c)
	case catalog.KindSubscriberSchema:
		return catalog.LoadSubscriberSchema(s, c)
	case kindQuota:
		return r.loadQuota(c)
	case kindFloor:
		return r.loadFloor(c)
	case kindQuarantine:
		return r.loadQuarantine(c)
	}
	name, known := s.ServiceNames[c.Service]
	if !known {
		return fmt.Errorf("no service %d", c.Service)
	}
	svc := s.Services[name]
	if svc == nil { // deleted, and with it all that it had
		svc = catalog.NewService(c.Service, name)
	}
	switch c.Kind {
	case catalog.KindChannel:
		return catalog.LoadChannel(s, svc, c)
	case catalog.KindTopic:
		t, err := catalog.LoadTopic(s, svc, c)
		if err != nil || t == nil {
			return err
		}
		return r.opt.Conditions.Define(t.ConditionKey(), t.ConditionDefinition())
	case kindSlot:
		return r.loadSlot(svc, c)
	case catalog.KindTemplate:
		return catalog.LoadTemplate(s, svc, c)
	case catalog.KindDraft:
		return catalog.LoadDraft(s, svc, c)
	}
	return fmt.Errorf("unknown kind; was the store written by a newer version?")
}
