package dispatch

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/render"
)

// runItems contains the events of a run that its digests report, as far as they were needed.
type runItems struct {
	store itemStore
	run   fanfare.EventRef
	known map[uint32]*render.Item
	bytes int
}

type itemStore interface {
	Items(ctx context.Context, run fanfare.EventRef, numbers []uint32, visit func(fanfare.RunItem) error) error
}

const (
	// maxItemsPerRead bounds the events of a run that are read at a time; minItemsPerRead is used
	// while their size is not known, since one may have a megabyte.
	maxItemsPerRead = 1024
	minItemsPerRead = 32
	// maxItemBytes limits the events that are retained for the next batches.
	maxItemBytes = 4 << 20
)

// fetch reads the items of the first of members, and along with them those of the next members of
// the run.
func (r *runItems) fetch(ctx context.Context, members []openMember) error {
	if !r.lacks(&members[0]) {
		return nil
	}
	most := r.perRead()
	if r.known == nil || r.bytes > maxItemBytes {
		r.known, r.bytes = map[uint32]*render.Item{}, 0
	}
	wanted := map[uint32]bool{}
	for i := range members {
		if i > 0 && (len(wanted) >= most || members[i].event() != r.run) {
			break
		}
		for _, item := range members[i].member.Items {
			if r.known[item.Number] == nil {
				wanted[item.Number] = true
			}
		}
	}
	numbers := make([]uint32, 0, len(wanted))
	for n := range wanted {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return r.store.Items(ctx, r.run, numbers, func(item fanfare.RunItem) error {
		p := item.Posted
		r.known[item.Number] = &render.Item{Event: &p.Event, Ref: p.Ref(), Topic: p.Topic}
		r.bytes += len(p.Event.Data) + len(p.Event.Binary)
		return nil
	})
}

// perRead returns how many events are read at a time: as many as may be kept if they have the size
// of the known ones.
func (r *runItems) perRead() int {
	if len(r.known) == 0 {
		return minItemsPerRead
	}
	return min(maxItemsPerRead, max(minItemsPerRead, maxItemBytes/(r.bytes/len(r.known)+1)))
}

func (r *runItems) lacks(m *openMember) bool {
	for _, item := range m.member.Items {
		if r.known[item.Number] == nil {
			return true
		}
	}
	return false
}

// digest returns what the messages of a run share.
func (r *runItems) digest(run *fanfare.Run) *render.Digest {
	return &render.Digest{
		Due: run.Due, Cadence: run.Cadence, Zone: compose.TimeZone(run.Zone, ""),
		Item: func(number uint32) *render.Item { return r.known[number] },
	}
}

// itemsOf returns the items of a member that one of its live subscriptions still wants. live is
// ascending by id.
func itemsOf(m *fanfare.Member, live []render.Subscription) []render.RecipientItem {
	items := make([]render.RecipientItem, 0, len(m.Items))
	wanted := make([]uint32, 0, len(m.Items)) // never grows, so that slices of it stay valid
	for _, item := range m.Items {
		at, ok := slices.BinarySearchFunc(live, item.Subscription, func(s render.Subscription, id fanfare.RowID) int {
			return int(int64(s.Row) - int64(id))
		})
		if !ok {
			continue
		}
		wanted = append(wanted, uint32(at))
		if n := len(items); n == 0 || items[n-1].Number != item.Number {
			items = append(items, render.RecipientItem{Number: item.Number})
		}
		last := &items[len(items)-1]
		last.Subscriptions = wanted[len(wanted)-1-len(last.Subscriptions):]
	}
	return items
}

func rowIDs(all []render.Subscription) []fanfare.RowID {
	ids := make([]fanfare.RowID, len(all))
	for i := range all {
		ids[i] = all[i].Row
	}
	return ids
}

// topicsOf returns the topics whose settings apply to a mailing: its own, or those whose events
// the digests of a run report.
func (s *Stage) topicsOf(m *mailing) (topics []*catalog.Topic) {
	if m.event.Run == nil {
		if topic, ok := s.Registry.Topic(m.event.Service, m.event.Topic); ok {
			topics = append(topics, topic)
		}
		return topics
	}
	source, ok := s.Registry.Template(m.template)
	if !ok {
		return nil
	}
	for _, topic := range s.Registry.Topics(m.event.Service) {
		if topic.LatestDigest().Template == source.Name {
			topics = append(topics, topic)
		}
	}
	return topics
}
