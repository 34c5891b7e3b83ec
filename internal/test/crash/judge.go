package crash

import (
	"fmt"
	"time"
)

// A Verdict is the result of the comparison.
type Verdict struct {
	Events   int
	Arrivals int
	Expected int // (event, recipient) that had to arrive
	Either   int // that arrived, and might as well not have
	Refused  int // that had to, and were refused for good by the capture server

	Lost       []string // that had to arrive and did not
	Unasked    []string // messages to people who did not subscribe to the event
	AfterEnd   []string // that arrived after an end was acknowledged
	Unknown    []string // messages about events that were not acknowledged
	Renamed    []string // that arrived again under another Message-ID
	Duplicates int      // that arrived again
}

// Broken lists the violations that no crash may cause. It leaves out duplicates, because their limit depends on the number
// of kills.
func (v *Verdict) Broken() map[string][]string {
	broken := map[string][]string{}
	for what, found := range map[string][]string{
		"lost": v.Lost, "sent to somebody who did not ask": v.Unasked, "sent after an acknowledged end": v.AfterEnd,
		"of an event that was never acknowledged": v.Unknown, "again under another Message-ID": v.Renamed,
	} {
		if len(found) > 0 {
			broken[what] = found
		}
	}
	return broken
}

func (v *Verdict) String() string {
	return fmt.Sprintf("%d events, %d messages had to arrive, %d were refused for good, %d arrived (%d of them either way); lost %d, unasked %d, after an end %d, of unknown events %d, duplicates %d (%d renamed)",
		v.Events, v.Expected, v.Refused, v.Arrivals, v.Either, len(v.Lost), len(v.Unasked), len(v.AfterEnd), len(v.Unknown), v.Duplicates, len(v.Renamed))
}

// Judge compares the messages that arrived with the expected ones. refused reports whether the capture server permanently
// refuses a recipient; Judge calls it only for recipients without a message.
func Judge(events []Event, arrivals []Arrival, refused func(address string) (bool, error)) (*Verdict, error) {
	v := &Verdict{Events: len(events), Arrivals: len(arrivals)}
	reached := v.sort(events, arrivals)
	for i := range events {
		e := &events[i]
		for address, person := range e.Audience {
			must, _ := person.during(e.Sent, e.Settled)
			if !must {
				continue
			}
			v.Expected++
			if _, ok := reached[key{e.ID, address}]; ok {
				continue
			}
			no, err := refused(address)
			if err != nil {
				return nil, err
			}
			if no {
				v.Refused++
			} else {
				v.Lost = append(v.Lost, e.ID+" to "+address)
			}
		}
	}
	return v, nil
}

type key struct{ event, recipient string }

// sort judges each arrival, and returns the Message-ID of the first for each
// event and recipient.
func (v *Verdict) sort(events []Event, arrivals []Arrival) map[key]string {
	known := make(map[string]*Event, len(events))
	for i := range events {
		known[events[i].ID] = &events[i]
	}
	reached := make(map[key]string, len(arrivals))
	for _, a := range arrivals {
		what := a.Event + " to " + a.Recipient
		e := known[a.Event]
		if e == nil {
			v.Unknown = append(v.Unknown, what)
			continue
		}
		person := e.Audience[a.Recipient]
		must, may := person.during(e.Sent, e.Settled)
		if !may {
			v.Unasked = append(v.Unasked, what)
		} else if !must {
			v.Either++
		}
		if person.over(a.At) {
			v.AfterEnd = append(v.AfterEnd, fmt.Sprintf("%s, %v after the acknowledgement", what, person.since(a.At)))
		}
		k := key{a.Event, a.Recipient}
		first, again := reached[k]
		if !again {
			reached[k] = a.MessageID
			continue
		}
		v.Duplicates++
		if first != a.MessageID {
			v.Renamed = append(v.Renamed, what)
		}
	}
	return reached
}

// since is how long before a moment the last change was acknowledged.
func (p Person) since(at time.Time) time.Duration {
	least := time.Duration(-1)
	for _, t := range p {
		for _, c := range t {
			if d := at.Sub(c.Acked); d > 0 && (least < 0 || d < least) {
				least = d
			}
		}
	}
	return least
}
