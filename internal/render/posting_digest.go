package render

import (
	"strconv"
	"time"
)

// eventTexts are the items of a digest for programs, as documents have them.
type eventTexts struct {
	digest *Digest
	kept   texts
	key    []byte
}

func newEventTexts(d *Digest) *eventTexts { return &eventTexts{digest: d} }

// appendDigest appends what all receivers of a digest are told of it.
func appendDigest(b []byte, d *Digest) []byte {
	b = d.Due.In(d.Zone).AppendFormat(append(b, `{"due":"`...), time.RFC3339)
	b = appendString(append(b, `","cadence":`...), d.Cadence)
	b = appendString(append(b, `,"time_zone":`...), d.Zone.String())
	return append(b, '}')
}

// append appends what a receiver is told of.
func (t *eventTexts) append(b []byte, r *Recipient) ([]byte, error) {
	b = strconv.AppendInt(append(b, `,"count":`...), int64(r.count()), 10)
	b = strconv.AppendInt(append(b, `,"more":`...), int64(r.More), 10)
	b = append(b, `,"items":[`...)
	for i := range r.Items {
		if i > 0 {
			b = append(b, ',')
		}
		item := &r.Items[i]
		text, err := t.of(item.Number)
		if err != nil {
			return b, err
		}
		b = append(append(b, text...), `,"subscriptions":[`...)
		for j, place := range item.Subscriptions {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendString(b, r.Subscriptions[place].ID)
		}
		b = append(b, "]}"...)
	}
	return append(b, ']'), nil
}

// of returns an item up to the subscriptions that wanted it.
func (t *eventTexts) of(number uint32) ([]byte, error) {
	t.key = strconv.AppendUint(t.key[:0], uint64(number), 10)
	if text, ok := t.kept.find(t.key); ok {
		return text, nil
	}
	item := t.digest.Item(number)
	text, err := appendCloudEvent([]byte(`{"event":`), item.Event)
	if err != nil {
		return nil, err
	}
	text = appendString(append(text, `,"topic":`...), item.Topic)
	text = appendString(append(text, `,"ref":`...), item.Ref.String())
	t.kept.keep(t.key, text)
	return text, nil
}
