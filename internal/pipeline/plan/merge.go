package plan

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
)

// A SourceEvent describes an event that waits for a run. The events of a run are numbered in the
// order in which they were accepted.
type SourceEvent struct {
	Template uint32 // version of the digest template
	Topic    int    // index of its topic in the run
	Version  int    // number of its digest key in the run, from 1: only the newest event of a key is reported; 0: it has no key
	Bytes    int    // of its data
}

// MaxMessageEventBytes bounds the data of the events in one message: fifty of the largest events,
// the default maximum of a topic.
const MaxMessageEventBytes = 16 << 20

// A DigestMerger merges the events that wait for a run by subscriber: a member for each
// (subscriber, channel, template), with the newest events of the member, the oldest first. The
// caller adds a few partitions, calls Manifests, and continues with the next partitions, so
// that memory does not grow with the run.
type DigestMerger struct {
	Sources []SourceEvent
	Max     []int                    // events of each topic in a message
	Live    func(fanfare.RowID) bool // whether a subscription is active

	pairs       []waitingPair
	templates   []uint32 // versions, sorted
	versions    counters // events of each key, for the current member
	topicCounts counters // events of each topic, for the current member
	used        []bool   // events that are in messages
	members     uint32   // so far
}

// A waitingPair is a subscription that waits for an event, in the order of sorting: member has the
// subscriber, the channel and the template, item the event number and the subscription.
type waitingPair struct{ member, item uint64 }

const (
	subscriberShift = 32
	channelShift    = 16
	numberShift     = 32
)

func (w waitingPair) subscriber() fanfare.RowID { return fanfare.RowID(w.member >> subscriberShift) }
func (w waitingPair) channel() uint16           { return uint16(w.member >> channelShift) }
func (w waitingPair) number() uint32            { return uint32(w.item >> numberShift) }
func (w waitingPair) subscription() fanfare.RowID {
	return fanfare.RowID(w.item & (1<<numberShift - 1))
}

// Add adds the members of an event in the partitions [from, to).
func (d *DigestMerger) Add(number uint32, m *fanfare.Manifest, from, to int) {
	if from >= to {
		return
	}
	template := d.template(number)
	for i := range m.Sections {
		members := &m.Sections[i].Members
		low, _ := slices.BinarySearch(members.Subscribers(), fanfare.NewRowID(from, 0))
		for at := low; at < members.Len(); at++ {
			member := members.At(at)
			if member.Subscriber.Partition() >= to {
				break
			}
			for _, place := range member.Subscriptions {
				if d.Live(place) {
					d.pairs = append(d.pairs, waitingPair{
						member: uint64(member.Subscriber)<<subscriberShift | uint64(m.Sections[i].Channel)<<channelShift | template,
						item:   uint64(number)<<numberShift | uint64(place),
					})
				}
			}
		}
	}
}

// template returns the index of an event's template in templates.
func (d *DigestMerger) template(number uint32) uint64 {
	if d.templates == nil {
		for i := range d.Sources {
			d.templates = append(d.templates, d.Sources[i].Template)
		}
		slices.Sort(d.templates)
		d.templates = slices.Compact(d.templates)
	}
	at, _ := slices.BinarySearch(d.templates, d.Sources[number].Template)
	return uint64(at)
}

// Manifests returns the manifests of the added members, and removes these.
func (d *DigestMerger) Manifests(run fanfare.EventSeq) []fanfare.Manifest {
	slices.SortFunc(d.pairs, func(a, b waitingPair) int {
		if a.member != b.member {
			return cmp.Compare(a.member, b.member)
		}
		return cmp.Compare(a.item, b.item)
	})
	pairs := slices.Compact(d.pairs)
	var manifests []fanfare.Manifest
	for len(pairs) > 0 {
		n := manifestLen(pairs, waitingPair.subscriber)
		manifests = append(manifests, fanfare.Manifest{
			ID:       fanfare.NewManifestID(run, pairs[0].subscriber().Partition()),
			Sections: d.sections(pairs[:n]),
		})
		pairs = pairs[n:]
	}
	d.pairs = d.pairs[:0]
	return manifests
}

// Used returns the numbers of the events that are in messages, ascending.
func (d *DigestMerger) Used() (numbers []uint32) {
	for i, used := range d.used {
		if used {
			numbers = append(numbers, uint32(i))
		}
	}
	return numbers
}

// sections groups the pairs of a manifest into sections of members.
func (d *DigestMerger) sections(pairs []waitingPair) []fanfare.Section {
	var sections []fanfare.Section
	at := map[uint64]int{} // by channel and template
	var member fanfare.Member
	for len(pairs) > 0 {
		n := 1
		for n < len(pairs) && pairs[n].member == pairs[0].member {
			n++
		}
		key := pairs[0].member & (1<<subscriberShift - 1)
		i, known := at[key]
		if !known {
			i = len(sections)
			at[key] = i
			sections = append(sections, fanfare.Section{Channel: pairs[0].channel(), Template: d.Sources[pairs[0].number()].Template})
		}
		d.addMember(&member, pairs[:n])
		sections[i].Members.AddMember(member)
		pairs = pairs[n:]
	}
	return sections
}

// addMember fills a member from its pairs: the newest event of each key, the newest events of each
// topic, and of these as many as fit in a message.
func (d *DigestMerger) addMember(m *fanfare.Member, pairs []waitingPair) {
	if d.used == nil {
		d.used = make([]bool, len(d.Sources))
	}
	d.members++
	m.Subscriber, m.Subscriptions, m.Items, m.More = pairs[0].subscriber(), m.Subscriptions[:0], m.Items[:0], 0
	size, full := 0, false
	for end := len(pairs); end > 0; { // newest first
		start := end - 1
		number := pairs[start].number()
		for start > 0 && pairs[start-1].number() == number {
			start--
		}
		of := pairs[start:end]
		end = start
		source := &d.Sources[number]
		if source.Version > 0 && d.versions.count(source.Version, d.members) > 1 {
			continue
		}
		full = full || size+source.Bytes > MaxMessageEventBytes
		if full || d.topicCounts.count(source.Topic, d.members) > d.Max[source.Topic] {
			m.More++
			continue
		}
		size += source.Bytes
		d.used[number] = true
		for _, pair := range slices.Backward(of) {
			m.Items = append(m.Items, fanfare.Item{Number: number, Subscription: pair.subscription()})
			m.Subscriptions = append(m.Subscriptions, pair.subscription())
		}
	}
	slices.Reverse(m.Items)
	slices.Sort(m.Subscriptions)
	m.Subscriptions = slices.Compact(m.Subscriptions)
}

// counters count per member. A count starts again with the next member.
type counters []struct {
	member uint32
	times  int
}

func (s *counters) count(what int, member uint32) int {
	if what >= len(*s) {
		*s = append(*s, make(counters, what+1-len(*s))...)
	}
	at := &(*s)[what]
	if at.member != member {
		at.member, at.times = member, 0
	}
	at.times++
	return at.times
}
