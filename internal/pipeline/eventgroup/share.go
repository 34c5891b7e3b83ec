package eventgroup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
)

// servicePrefix and topicPrefix are the first bytes of an encoded event and of its topic.
const (
	servicePrefix = `{"service":"`
	topicPrefix   = `,"topic":"`
)

// An origin is the service and the topic of an event.
type origin struct{ service, topic string }

// originOf reads the origin of an event without decoding the rest. start is the beginning of
// the event up to the end of its origin: another event with this beginning has the same origin.
// start is nil where the names are escaped.
func originOf(encoded []byte) (from origin, start []byte, err error) {
	if rest, ok := bytes.CutPrefix(encoded, []byte(servicePrefix)); ok {
		if service, rest, ok := plainText(rest); ok {
			if rest, ok = bytes.CutPrefix(rest, []byte(topicPrefix)); ok {
				if topic, rest, ok := plainText(rest); ok {
					return origin{string(service), string(topic)}, encoded[:len(encoded)-len(rest)], nil
				}
			}
		}
	}
	var of struct {
		Service string `json:"service"`
		Topic   string `json:"topic"`
	}
	if err := json.Unmarshal(encoded, &of); err != nil {
		return from, nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return origin{of.Service, of.Topic}, nil, nil
}

// plainText reads a JSON string after its first quote. It fails if the string has escapes.
func plainText(b []byte) (text, rest []byte, ok bool) {
	end := bytes.IndexByte(b, '"')
	if end < 0 || bytes.IndexByte(b[:end], '\\') >= 0 {
		return nil, nil, false
	}
	return b[:end], b[end+1:], true
}

// origins reads the origins of one event after the other; neighbours often share one.
type origins struct {
	last  origin
	start []byte
}

func (o *origins) of(encoded []byte) (origin, error) {
	if len(o.start) > 0 && bytes.HasPrefix(encoded, o.start) {
		return o.last, nil
	}
	var err error
	o.last, o.start, err = originOf(encoded)
	return o.last, err
}

// A Share is the events of a group that are matched together: the events of one topic, or all
// other events of a service.
type Share struct {
	Service string
	Topic   string   // "": all topics of the service but Except
	Except  []string // topics that have a share of their own, if Topic is ""
	Events  int
}

// has reports whether the share has the events of an origin.
func (s *Share) has(from origin) bool {
	if s.Service != from.service {
		return false
	}
	if s.Topic != "" {
		return s.Topic == from.topic
	}
	return !slices.Contains(s.Except, from.topic)
}

// Shares returns the shares of a group, in the order of their first events. separate reports
// whether a topic has a share of its own; nil means that none has.
func Shares(group []byte, separate func(service, topic string) bool) ([]Share, error) {
	var shares []Share
	var from origins
	at := map[origin]int{} // of topics, and of services
	err := visit(group, func(encoded []byte) error {
		of, err := from.of(encoded)
		if err != nil {
			return err
		}
		i, known := at[of]
		if !known {
			share := origin{service: of.service}
			if of.topic != "" && separate != nil && separate(of.service, of.topic) {
				share = of
			}
			if i, known = at[share]; !known {
				i = len(shares)
				shares = append(shares, Share{Service: share.service, Topic: share.topic})
			}
			at[of], at[share] = i, i
		}
		shares[i].Events++
		return nil
	})
	for i := range shares {
		for _, other := range shares {
			if shares[i].Topic == "" && other.Topic != "" && other.Service == shares[i].Service {
				shares[i].Except = append(shares[i].Except, other.Topic)
			}
		}
	}
	return shares, err
}

// DecodeShare decodes the events of one share of a group.
func DecodeShare(share *Share, group []byte, seq uint64) ([]*fanfare.AcceptedEvent, error) {
	var from origins
	return decode(group, seq, func(encoded []byte) (bool, error) {
		of, err := from.of(encoded)
		return err == nil && share.has(of), err
	})
}
