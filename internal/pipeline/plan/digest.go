package plan

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
)

// A Source is what a run has to know of an event that was gathered for it. The
// sources of a run are numbered in the order in which the events were accepted.
type Source struct {
	Template uint32 // version that tells of it
	Topic    int    // number of its topic in the run, from 0
	Version  int    // number of the thing that it tells of, from 1: of several events the newest counts; 0: it stands alone
	Bytes    int    // of its data
}

// MaxToldBytes is what the data of the events of one message have at most: fifty of the
// largest, as many as a topic tells of that does not say.
const MaxToldBytes = 16 << 20

// A Digest merges what was gathered for a run by subscriber: a member for each
// (subscriber, channel, template), with the newest events that it is to be told of,
// the oldest first. It is fed the partitions of a pass at a time, so that memory
// does not grow with the run.
type Digest struct {
	Sources []Source
	Max     []int                    // events of each topic that a member is told of at most
	Wants   func(fanfare.RowID) bool // whether a subscription is still there

	pairs     []waiting
	templates []uint32 // versions, sorted
	versions  stamps   // things that the member at hand is told of
	told      stamps   // topics of the member at hand: with a count each
	used      []bool   // sources
	members   uint32   // that were at hand
}

// waiting is a subscription that waits for an event, as it is sorted: subscriber,
// channel and template are the member, number and subscription its item.
type waiting struct{ member, item uint64 }

const (
	subscriberShift = 32
	channelShift    = 16
	numberShift     = 32
)

func (w waiting) subscriber() fanfare.RowID { return fanfare.RowID(w.member >> subscriberShift) }
func (w waiting) channel() uint16           { return uint16(w.member >> channelShift) }
func (w waiting) number() uint32            { return uint32(w.item >> numberShift) }
func (w waiting) subscription() fanfare.RowID {
	return fanfare.RowID(w.item & (1<<numberShift - 1))
}

// Add takes the members of an event in the partitions [from, to).
func (d *Digest) Add(number uint32, m *fanfare.Manifest, from, to int) {
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
				if d.Wants(place) {
					d.pairs = append(d.pairs, waiting{
						member: uint64(member.Subscriber)<<subscriberShift | uint64(m.Sections[i].Channel)<<channelShift | template,
						item:   uint64(number)<<numberShift | uint64(place),
					})
				}
			}
		}
	}
}

// template is the place of an event's template among all.
func (d *Digest) template(number uint32) uint64 {
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

// Manifests makes the manifests of what was added, and forgets it.
func (d *Digest) Manifests(run fanfare.EventSeq) []fanfare.Manifest {
	slices.SortFunc(d.pairs, func(a, b waiting) int {
		if a.member != b.member {
			return cmp.Compare(a.member, b.member)
		}
		return cmp.Compare(a.item, b.item)
	})
	pairs := slices.Compact(d.pairs)
	var manifests []fanfare.Manifest
	for len(pairs) > 0 {
		n := runOf(pairs, waiting.subscriber)
		manifests = append(manifests, fanfare.Manifest{
			ID:       fanfare.NewManifestID(run, pairs[0].subscriber().Partition()),
			Sections: d.sections(pairs[:n]),
		})
		pairs = pairs[n:]
	}
	d.pairs = d.pairs[:0]
	return manifests
}

// Used are the numbers of the events that members are told of, ascending.
func (d *Digest) Used() (numbers []uint32) {
	for i, used := range d.used {
		if used {
			numbers = append(numbers, uint32(i))
		}
	}
	return numbers
}

// sections makes the members of a run of pairs and sorts them by section.
func (d *Digest) sections(pairs []waiting) []fanfare.Section {
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
		d.tell(&member, pairs[:n])
		sections[i].Members.AddMember(member)
		pairs = pairs[n:]
	}
	return sections
}

// tell makes a member of the pairs that are its: of each thing the newest version,
// of each topic the newest events, and of all as many as a message can hold.
func (d *Digest) tell(m *fanfare.Member, pairs []waiting) {
	if d.used == nil {
		d.used = make([]bool, len(d.Sources))
	}
	d.members++
	m.Subscriber, m.Subscriptions, m.Items, m.More = pairs[0].subscriber(), m.Subscriptions[:0], m.Items[:0], 0
	size, full := 0, false
	for end := len(pairs); end > 0; { // the newest first
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
		full = full || size+source.Bytes > MaxToldBytes
		if full || d.told.count(source.Topic, d.members) > d.Max[source.Topic] {
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

// stamps count how often something was met in one member, and forget it with the
// next.
type stamps []struct {
	member uint32
	times  int
}

func (s *stamps) count(what int, member uint32) int {
	if what >= len(*s) {
		*s = append(*s, make(stamps, what+1-len(*s))...)
	}
	at := &(*s)[what]
	if at.member != member {
		at.member, at.times = member, 0
	}
	at.times++
	return at.times
}
