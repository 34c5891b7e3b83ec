package registry

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/store/control"
)

// NoticeNames are what is called how that news are of. Whoever is being forgotten, and
// what they were subscribed to, has no names but those that we made.
type NoticeNames struct {
	Service string
	Topic   string // deleted ones have names, too
	Channel string

	Subscription string // public id
	Subscriber   string // public id
	Address      string // its kind, mail or url
}

// NoticeNames returns the names of each of several news.
func (r *Registry) NoticeNames(ctx context.Context, news []control.Notice) ([]NoticeNames, error) {
	var rows, subscriptions []fanfare.RowID
	for i := range news {
		rows = append(rows, news[i].Subscriber)
		if news[i].Subscription != 0 {
			subscriptions = append(subscriptions, news[i].Subscription)
		}
	}
	who, err := r.namesOfOwners(ctx, control.SortPlaces(rows))
	if err != nil {
		return nil, r.unreadable(err)
	}
	what := map[fanfare.RowID]string{}
	err = r.opt.Store.SubscriptionRecords(ctx, control.SortPlaces(subscriptions), func(s *control.SubscriptionRecord) error {
		what[s.Place] = people.PublicSubscriptionID(s)
		return nil
	})
	if err != nil {
		return nil, r.unreadable(err)
	}
	conf := r.Snapshot()
	names := make([]NoticeNames, len(news))
	for i := range news {
		n, to := &news[i], &names[i]
		to.Service, to.Address, to.Subscription = conf.ServiceNames[n.Service], addresskind.Names[n.Address], what[n.Subscription]
		var known bool
		if to.Subscriber, known = who[n.Subscriber]; !known {
			to.Subscriber = people.SubscriberID(n.Subscriber)
			if n.Subscription != 0 {
				to.Subscription = fanfare.SubscriptionID(n.Subscription)
			}
		}
		if t := conf.Topics[n.Topic]; t != nil {
			to.Topic = t.Name
		}
		if c := conf.Channels[n.Channel]; c != nil {
			to.Channel = c.Name
		}
	}
	return names, nil
}

// namesOfOwners returns the public ids of who has some rows, by row; none of who is
// being forgotten.
func (r *Registry) namesOfOwners(ctx context.Context, places []fanfare.RowID) (map[fanfare.RowID]string, error) {
	rows, err := r.records(ctx, places)
	if err != nil {
		return nil, err
	}
	var heads []fanfare.RowID
	for _, row := range rows {
		heads = append(heads, row.Head())
	}
	owners, err := r.records(ctx, control.SortPlaces(heads))
	if err != nil {
		return nil, err
	}
	names := make(map[fanfare.RowID]string, len(rows))
	for place, row := range rows {
		if head := owners[row.Head()]; head != nil && (row.Flags|head.Flags)&(control.FlagErasing|control.FlagErased) == 0 {
			names[place] = people.PublicSubscriberID(head)
		}
	}
	return names, nil
}
