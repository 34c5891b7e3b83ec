// Package eventgroup encodes and decodes the messages of the stream EVENTS: groups of events
// that were accepted together. Ingestion writes groups, matching reads them, and backup,
// erasure, parked work and the notifier also read or write them.
package eventgroup

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"fanfare.dev/fanfare"
)

var errDamaged = errors.New("event group is damaged")

// Encode returns a group of events that have a sequence already: they were parked, or come from
// a backup. Each keeps its sequence when the group is appended again.
func Encode(events ...*fanfare.AcceptedEvent) ([]byte, error) {
	var group []byte
	for _, p := range events {
		again := *p
		again.Was = p.Seq
		encoded, err := EncodeEvent(&again)
		if err != nil {
			return nil, err
		}
		group = append(binary.AppendUvarint(group, uint64(len(encoded))), encoded...)
	}
	return group, nil
}

// EncodeEvent encodes one event, without the length that precedes it in a group. It leaves out
// the escapes for HTML, which would make some data six times as long.
func EncodeEvent(p *fanfare.AcceptedEvent) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(p)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Decode decodes all events of a group. seq is the sequence of the group in EVENTS, from which
// each event gets its own, unless it had one before.
func Decode(group []byte, seq uint64) ([]*fanfare.AcceptedEvent, error) {
	return decode(group, seq, func([]byte) (bool, error) { return true, nil })
}

// decode decodes the wanted events of a group.
func decode(group []byte, seq uint64, wanted func(encoded []byte) (bool, error)) ([]*fanfare.AcceptedEvent, error) {
	var events []*fanfare.AcceptedEvent
	index := -1
	err := visit(group, func(encoded []byte) error {
		index++
		if ok, err := wanted(encoded); err != nil || !ok {
			return err
		}
		p := &fanfare.AcceptedEvent{}
		if err := json.Unmarshal(encoded, p); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		if p.Seq = p.Was; p.Seq == 0 {
			p.Seq = fanfare.NewEventSeq(seq, index)
		}
		events = append(events, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// visit calls fn for each encoded event of a group, in order.
func visit(group []byte, fn func(encoded []byte) error) error {
	for len(group) > 0 {
		size, n := binary.Uvarint(group)
		if n <= 0 || size > uint64(len(group)-n) {
			return errDamaged
		}
		if err := fn(group[n : n+int(size)]); err != nil {
			return err
		}
		group = group[n+int(size):]
	}
	return nil
}
