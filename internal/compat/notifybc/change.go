package notifybc

import (
	"context"
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
	"fanfare.dev/fanfare/internal/people"
)

// patchSubscription changes the address and the data of a subscription. Another address must be confirmed.
func (a *API) patchSubscription(x *Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	address, err := body.text("userChannelId")
	if err != nil {
		return err
	}
	if _, ok := body["data"]; ok && !body.isObject("data") {
		return Bad("data must be an object")
	}
	var message *settings.Message
	s, err := a.change(x.Request.Context(), x.Request.PathValue("id"), func(s *subscription) (list []*subscription, err error) {
		if x.Caller.Role == roles.User && (s.userID() != x.Caller.SecurityID || s.state == stateDeleted) {
			return nil, errMissing
		}
		if address != "" && address != s.address {
			s.address, s.state = address, stateUnconfirmed
		}
		if data, ok := body["data"]; ok {
			s.members["data"] = data
		}
		x.stamp(s.members, "updated", "updatedBy")
		message, err = a.prepare(x, s)
		return []*subscription{s}, err
	})
	if err != nil {
		return err
	}
	if err := a.confirm(x, s, message); err != nil {
		return err
	}
	return x.JSON(s.record(x.Caller.IsAdmin()))
}

// replaceSubscription replaces a subscription as given. No message is sent.
func (a *API) replaceSubscription(x *Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	s, err := a.change(x.Request.Context(), x.Request.PathValue("id"), func(s *subscription) ([]*subscription, error) {
		fixed := Members{}
		for _, name := range []string{"created", "createdBy"} {
			if value, ok := s.members[name]; ok {
				fixed[name] = value
			}
		}
		if err := s.take(maps.Clone(body)); err != nil {
			return nil, err
		}
		maps.Copy(s.members, fixed)
		x.stamp(s.members, "updated", "updatedBy")
		return []*subscription{s}, nil
	})
	if err != nil {
		return err
	}
	return x.JSON(s.record(true))
}

// listServices lists the names of the services with confirmed subscriptions.
func (a *API) listServices(x *Exchange) error {
	names := []string{}
	service, err := a.Topics.Snapshot().Service(a.Settings.Service)
	if err != nil {
		return err
	}
	for _, topic := range service.Topics {
		if !topic.PerSubscription {
			continue
		}
		confirmed, err := a.hasConfirmed(x.Request.Context(), topic.Name)
		if err != nil {
			return err
		}
		if confirmed {
			names = append(names, serviceNameOf(topic))
		}
	}
	slices.Sort(names)
	return x.JSON(names)
}

func (a *API) hasConfirmed(ctx context.Context, topic string) (found bool, err error) {
	err = a.each(ctx, people.SubscriptionFilter{Topic: topic, State: people.StateActive}, func(*subscription) bool {
		found = true
		return false
	})
	return found, err
}
