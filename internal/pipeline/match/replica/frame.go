package replica

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/condition"
)

// Protocol is the name and version of the protocol of a link. It changes with the encoding of frames.
const Protocol = "fanfare-match/1"

// The kinds of frames.
const (
	kindDefine = link.Ping + 1 + iota // leader: the definition of a topic
	kindAdd                           // leader: subscriptions were added or replaced
	kindRemove                        // leader: a subscription was removed
	kindLoad                          // leader: subscriptions, as the database has them
	kindLoaded                        // leader: these were all
	kindReady                         // node: the copy is complete
	kindMatch                         // leader: match events; the stream is the number of the request
	kindHits                          // node: the hits of a request
)

func keyPayload(key condition.Key) []byte {
	return link.AppendText(link.AppendText(nil, key.Service), key.Topic)
}

func readKey(d *link.Decoder) condition.Key { return condition.Key{Service: d.Text(), Topic: d.Text()} }

func appendEntry(dst []byte, e *condition.Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.Place))
	dst = binary.AppendUvarint(dst, uint64(e.Subscriber))
	dst = binary.AppendUvarint(dst, uint64(e.Channel))
	dst = binary.AppendUvarint(dst, uint64(e.Slot))
	dst = link.AppendText(dst, e.Filter)
	dst = link.AppendText(dst, e.Rule)
	return link.AppendText(dst, []byte(e.Params))
}

func readEntry(d *link.Decoder) condition.Entry {
	e := condition.Entry{Place: fanfare.RowID(d.Uint()), Subscriber: fanfare.RowID(d.Uint()), Channel: readUint16(d), Slot: readUint16(d), Filter: d.Text(), Rule: d.Text()}
	if params := d.Bytes(); len(params) > 0 {
		e.Params = params
	}
	return e
}

func readUint16(d *link.Decoder) uint16 {
	v := d.Uint()
	if v > math.MaxUint16 {
		d.Fail()
		return 0
	}
	return uint16(v)
}

// appendEvent appends an event. It has no payload of a CloudEvent that no condition can read.
func appendEvent(dst []byte, e *condition.Event) ([]byte, error) {
	a := &e.Attributes
	dst = link.AppendText(dst, []byte(e.Data))
	dst = link.AppendText(dst, []byte(e.Previous))
	for _, text := range []string{a.ID, a.Source, a.Type, a.Subject} {
		dst = link.AppendText(dst, text)
	}
	at, err := a.Time.MarshalBinary()
	if err != nil {
		return dst, err
	}
	dst = link.AppendText(dst, at)
	if len(a.Extensions) == 0 {
		return link.AppendText(dst, ""), nil
	}
	extensions, err := json.Marshal(a.Extensions)
	return link.AppendText(dst, extensions), err
}

func readEvent(d *link.Decoder) (e condition.Event) {
	e.Data, e.Previous = readJSON(d), readJSON(d)
	a := &e.Attributes
	a.ID, a.Source, a.Type, a.Subject = d.Text(), d.Text(), d.Text(), d.Text()
	var at time.Time
	if err := at.UnmarshalBinary(d.Bytes()); err != nil {
		d.Fail()
	}
	a.Time = at
	if extensions := d.Bytes(); len(extensions) > 0 && json.Unmarshal(extensions, &a.Extensions) != nil {
		d.Fail()
	}
	return e
}

// readJSON reads JSON; nil if it is empty.
func readJSON(d *link.Decoder) json.RawMessage {
	if text := d.Bytes(); len(text) > 0 {
		return text
	}
	return nil
}

// appendHits appends the hits of an event, which are ordered by place.
func appendHits(dst []byte, hits []fanfare.Hit) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(hits)))
	before := fanfare.RowID(0)
	for i := range hits {
		h := &hits[i]
		dst = binary.AppendUvarint(dst, uint64(h.Place-before))
		dst = binary.AppendVarint(dst, int64(h.Subscriber)-int64(h.Place))
		dst = binary.AppendUvarint(dst, uint64(h.Channel))
		dst = binary.AppendVarint(dst, int64(h.Rule))
		dst = binary.AppendUvarint(dst, uint64(h.Slot))
		before = h.Place
	}
	return dst
}

func readHits(d *link.Decoder) []fanfare.Hit {
	n := d.Uint()
	if n > uint64(len(d.Rest)) { // a hit has five bytes or more
		d.Fail()
		return nil
	}
	hits := make([]fanfare.Hit, 0, n)
	place := fanfare.RowID(0)
	for range n {
		place += fanfare.RowID(d.Uint())
		h := fanfare.Hit{Place: place, Subscriber: fanfare.RowID(int64(place) + d.Int()), Channel: readUint16(d)}
		rule := d.Int()
		if rule < math.MinInt16 || rule > math.MaxInt16 {
			d.Fail()
		}
		h.Rule, h.Slot = int16(rule), readUint16(d)
		hits = append(hits, h)
	}
	return hits
}
