package ingest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
)

var errDamaged = errors.New("event group is damaged")

// cut visits the events of a group as the log has them, in order.
func cut(group []byte, visit func(encoded []byte) error) error {
	for len(group) > 0 {
		size, n := binary.Uvarint(group)
		if n <= 0 || size > uint64(len(group)-n) {
			return errDamaged
		}
		if err := visit(group[n : n+int(size)]); err != nil {
			return err
		}
		group = group[n+int(size):]
	}
	return nil
}

// beforeService and beforeTopic are how an event begins in the log.
const (
	beforeService = `{"service":"`
	beforeTopic   = `,"topic":"`
)

// An origin is where an event comes from.
type origin struct{ service, topic string }

// originOf reads it without the rest of the event. start is what the event begins
// with, as far as it is where it comes from: another event that begins so comes from
// there too. It is nil where that is not so simple.
func originOf(encoded []byte) (from origin, start []byte, err error) {
	if rest, ok := bytes.CutPrefix(encoded, []byte(beforeService)); ok {
		if service, rest, ok := plainText(rest); ok {
			if rest, ok = bytes.CutPrefix(rest, []byte(beforeTopic)); ok {
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

// plainText reads a JSON text behind its first quote, where it is written as it is.
func plainText(b []byte) (text, rest []byte, ok bool) {
	end := bytes.IndexByte(b, '"')
	if end < 0 || bytes.IndexByte(b[:end], '\\') >= 0 {
		return nil, nil, false
	}
	return b[:end], b[end+1:], true
}

// origins reads where event after event comes from; neighbours often share it.
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

// A Share is the events of a group that are matched together: those of one topic that
// is by itself, or all others of a service.
type Share struct {
	Service string
	Topic   string   // "": those of the service that have no share of their own
	Apart   []string // these have one, if Topic is ""
	Events  int
}

// has reports whether the share has the events from there.
func (s *Share) has(from origin) bool {
	if s.Service != from.service {
		return false
	}
	if s.Topic != "" {
		return s.Topic == from.topic
	}
	return !slices.Contains(s.Apart, from.topic)
}

// Shares tells whose the events of a group are, by their first ones. Topics that apart
// says yes to have a share of their own; nil is for none.
func Shares(group []byte, apart func(service, topic string) bool) ([]Share, error) {
	var shares []Share
	var from origins
	at := map[origin]int{} // of topics, and of services
	err := cut(group, func(encoded []byte) error {
		of, err := from.of(encoded)
		if err != nil {
			return err
		}
		i, known := at[of]
		if !known {
			share := origin{service: of.service}
			if of.topic != "" && apart != nil && apart(of.service, of.topic) {
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
				shares[i].Apart = append(shares[i].Apart, other.Topic)
			}
		}
	}
	return shares, err
}

// DecodeOf is Decode of the events of one share.
func DecodeOf(share *Share, group []byte, seq uint64) ([]*fanfare.AcceptedEvent, error) {
	var from origins
	return decode(group, seq, func(encoded []byte) (bool, error) {
		of, err := from.of(encoded)
		return err == nil && share.has(of), err
	})
}

// decode reads those events of a group that are wanted. Sequences are set from the
// group's, but for an event that had one before.
func decode(group []byte, seq uint64, wanted func(encoded []byte) (bool, error)) ([]*fanfare.AcceptedEvent, error) {
	var events []*fanfare.AcceptedEvent
	place := -1
	err := cut(group, func(encoded []byte) error {
		place++
		if mine, err := wanted(encoded); err != nil || !mine {
			return err
		}
		p := &fanfare.AcceptedEvent{}
		if err := json.Unmarshal(encoded, p); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		if p.Seq = p.Was; p.Seq == 0 {
			p.Seq = fanfare.NewEventSeq(seq, place)
		}
		events = append(events, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}
