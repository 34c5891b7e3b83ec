package registry

import (
	"context"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
)

// PutSubscribers makes each line so, in their order, and is durable when it
// returns. It writes results[i] for lines[i]; one that is wrong has its own error
// and does not hold up the others. The error is for what concerns all. It returns
// when no message is on the wire for what ended by it.
func (r *Registry) PutSubscribers(ctx context.Context, service string, lines []people.ImportedSubscriber, results []people.PutResult) error {
	if len(results) != len(lines) {
		return fmt.Errorf("registry: %d results for %d lines", len(results), len(lines))
	}
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return err
	}
	shown := make([]people.Subscriber, len(lines))
	ended := make([][]fanfare.RowID, len(lines))
	jobs := make([]*job, len(lines))
	for i := range lines {
		result := &results[i]
		*result = people.PutResult{}
		var f change
		if lines[i].ID != "" {
			f, result.Err = r.putting(svc, lines[i].ID, lines[i].SubscriberPut, nil, &shown[i], &result.Created)
		} else {
			result.Created = true
			f, result.Err = r.creating(svc, lines[i].SubscriberPut, &shown[i])
		}
		if result.Err != nil {
			continue
		}
		j := &job{actor: audit.ActorOf(ctx), alter: func(g *group) (err error) {
			ended[i], err = f(g)
			return err
		}}
		if result.Err = r.writer.enqueue(ctx, j, nil); result.Err == nil {
			jobs[i] = j
		}
	}
	for i, j := range jobs {
		if j == nil {
			continue
		}
		<-j.done
		if results[i].Err = j.err; j.err == nil {
			results[i].ID = shown[i].ID
			r.awaitOff(ended[i])
		}
	}
	return nil
}
