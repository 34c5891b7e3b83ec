package render

import (
	"encoding/binary"
	"maps"

	"github.com/osteele/liquid"
)

// items are what the messages of a digest tell of, as templates see them.
type items struct {
	digest  *Digest
	service string
	voice   *voice
	effort  *effort

	decoded map[uint32]map[string]any
	bytes   int // of data that was decoded
	key     []byte
}

// Limits of what is kept of a digest for the next recipients, in bytes. Beyond
// them what is kept is forgotten, and made again where it is needed.
const (
	maxDecodedBytes = 1 << 20 // data of items that are at hand as variables
	maxKeptBytes    = 1 << 20 // text of one piece
)

// get returns what templates see of an item whoever is told of it.
func (it *items) get(number uint32) (map[string]any, error) {
	if known, ok := it.decoded[number]; ok {
		return known, nil
	}
	item := it.digest.Item(number)
	vars, err := eventVariables(item.Event, item.Topic, it.service)
	if err != nil {
		return nil, err
	}
	if it.bytes += len(item.Event.Data); it.decoded == nil || it.bytes > maxDecodedBytes {
		it.decoded, it.bytes = map[uint32]map[string]any{}, len(item.Event.Data)
	}
	it.decoded[number] = vars
	return vars, nil
}

// variables are the items of a recipient; all are his subscriptions, where the
// template asks whose they were.
func (it *items) variables(of []ItemOf, all []any) ([]any, error) {
	told := make([]any, len(of))
	for i := range of {
		vars, err := it.get(of[i].Number)
		if err != nil {
			return nil, err
		}
		if len(all) > 0 {
			vars = maps.Clone(vars)
			wanted := make([]any, 0, len(of[i].Subscriptions))
			for _, place := range of[i].Subscriptions {
				wanted = append(wanted, all[place])
			}
			vars["subscriptions"] = wanted
			if len(wanted) > 0 {
				vars["subscription"] = wanted[0]
			}
		}
		told[i] = vars
	}
	return told, nil
}

// append appends what a template says to whoever has these items, or as many; it
// reads nothing else of a recipient.
func (it *items) append(dst []byte, t *liquid.Template, reach reach, kept *texts, of []ItemOf, more int) ([]byte, error) {
	it.key = binary.AppendUvarint(it.key[:0], uint64(more))
	if reach == ofTally {
		it.key = binary.AppendUvarint(it.key, uint64(len(of)))
	} else {
		for i := range of {
			it.key = binary.AppendUvarint(it.key, uint64(of[i].Number))
		}
	}
	if text, ok := kept.find(it.key); ok {
		return append(dst, text...), nil
	}
	told, err := it.variables(of, nil)
	if err != nil {
		return dst, err
	}
	text, wrong := render(t, map[string]any{
		"digest": it.digest.variables(it.service), "items": told, "count": len(of) + more, "more": more,
		voiceVariable: it.voice,
	}, it.effort)
	if wrong != nil {
		return dst, wrong
	}
	kept.keep(it.key, text)
	return append(dst, text...), nil
}

// texts are what was rendered already, by the items that it tells of.
type texts struct {
	known map[string][]byte
	bytes int
}

func (t *texts) find(key []byte) ([]byte, bool) {
	text, ok := t.known[string(key)]
	return text, ok
}

func (t *texts) keep(key, text []byte) {
	if t.bytes += len(key) + len(text); t.known == nil || t.bytes > maxKeptBytes {
		t.known, t.bytes = map[string][]byte{}, len(key)+len(text)
	}
	t.known[string(key)] = text
}
