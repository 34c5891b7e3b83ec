package notifier

import (
	"context"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/control"
)

// planNews creates events for the next waiting changes in the registry.
func (n *Notifier) planNews(ctx context.Context) (*eventBatch, error) {
	plan, err := n.control.PlanNotices(ctx, noticeGroups)
	if err != nil || len(plan) == 0 {
		return nil, err
	}
	next := &eventBatch{last: len(plan) < noticeGroups, forget: func(ctx context.Context) error { return n.control.DeleteNotices(ctx, plan) }}
	var all []control.Notice
	var ids []string
	for i := range plan {
		for j := range plan[i].Notices {
			one := &plan[i].Notices[j]
			all = append(all, *one)
			ids = append(ids, fmt.Sprintf("%s-p%x-%x", fanfare.DayOf(time.Unix(0, one.At)), plan[i].ID, j))
		}
	}
	next.count = len(all)
	names, err := n.registry.NoticeNames(ctx, all)
	if err != nil {
		return nil, err
	}
	var told []News
	for i := range all {
		if names[i].Service == "" {
			continue // it was deleted
		}
		one := newsOf(&all[i], &names[i])
		one.Name = ids[i]
		told = append(told, one)
	}
	next.events, err = OfPeople(told)
	return next, err
}

// newsOf adds the names of its objects to a change.
func newsOf(n *control.Notice, names *registry.NoticeNames) News {
	told := News{Service: names.Service, Kind: string(n.Kind), Source: n.Source, Reason: n.Reason, At: time.Unix(0, n.At).UTC(),
		Subscription: names.Subscription, Topic: names.Topic, Channel: names.Channel, Fields: n.Fields,
		Subscriber: names.Subscriber, Address: names.Address, AllServices: n.AllServices}
	if n.Until != 0 {
		told.Until = time.Unix(0, n.Until).UTC()
	}
	return told
}
