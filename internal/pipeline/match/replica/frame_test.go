package replica

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/condition"
)

// FuzzFrames reads entries, events and hits from any bytes: they must be read or refused, and what was read must be written
// the same way.
func FuzzFrames(f *testing.F) {
	event, err := appendEvent(nil, &condition.Event{Data: json.RawMessage(`{"a":1}`), Attributes: condition.Attributes{ID: "1", Time: time.Unix(1, 2).UTC(), Extensions: map[string]json.RawMessage{"x": json.RawMessage("1")}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(event)
	f.Add(appendEntry(nil, &condition.Entry{Place: 1, Subscriber: 2, Channel: 3, Slot: 4, Filter: "true", Params: json.RawMessage("{}")}))
	f.Add(appendHits(nil, []fanfare.Hit{{Place: 1, Subscriber: 9, Rule: -1}, {Place: 7, Subscriber: 2, Channel: 65535, Rule: 3, Slot: 2}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &link.Decoder{Rest: data}
		if e := readEntry(d); d.Err == nil {
			if again := readEntry(&link.Decoder{Rest: appendEntry(nil, &e)}); !reflect.DeepEqual(again, e) {
				t.Errorf("%+v is read again as %+v", e, again)
			}
		}
		d = &link.Decoder{Rest: data}
		if e := readEvent(d); d.Err == nil {
			text, err := appendEvent(nil, &e)
			if err != nil {
				return // an extension that is not JSON
			}
			if again := readEvent(&link.Decoder{Rest: text}); !again.Attributes.Time.Equal(e.Attributes.Time) || string(again.Data) != string(e.Data) || again.Attributes.Subject != e.Attributes.Subject {
				t.Errorf("%+v is read again as %+v", e, again)
			}
		}
		d = &link.Decoder{Rest: data}
		if hits := readHits(d); d.Err == nil {
			again := &link.Decoder{Rest: appendHits(nil, hits)}
			if got := readHits(again); again.Err != nil || len(got) != len(hits) {
				t.Errorf("%+v is read again as %+v, %v", hits, got, again.Err)
			}
		}
	})
}
