package render

import (
	"strings"

	"fanfare.dev/fanfare/internal/render/mime"
)

// An outline is a split part of which all that recipients share is text and values put
// out as they are: it is written without Liquid, which takes many times as long for a
// part that one event alone has. nil: the part has more.
type outline []stroke

// A stroke is text, a value, or the place of a personal piece.
type stroke struct {
	text  string // or the path, as the template spells it
	root  string // of the value, "" for none
	path  []any
	piece bool
}

// add takes the next unit that is shared, and reports whether an outline can have it.
func (o *outline) add(u *unit) bool {
	if u.single == nil {
		if len(u.paths) > 0 || strings.Contains(u.source, "{{") || strings.Contains(u.source, "{%") {
			return false
		}
		*o = append(*o, stroke{text: u.source})
		return true
	}
	names, ok := u.single.names()
	if !ok || len(names) == 0 || u.raw || u.fallback != nil {
		return false
	}
	s := stroke{root: u.single.root, text: spelled(u.single.text)}
	for _, name := range names {
		s.path = append(s.path, name)
	}
	*o = append(*o, s)
	return true
}

// chunks writes what is shared, as it stands between the pieces. It returns none where
// there is too much or a value may not be missing: Liquid says what is wrong.
func (o outline) chunks(vars map[string]any, m mode, absent *absences) []mime.Chunk {
	var chunks []mime.Chunk
	var text []byte
	total := 0
	for _, s := range o {
		switch {
		case s.piece:
			chunks = append(chunks, mime.NewChunk(text))
			total, text = total+len(text), nil
		case s.root == "":
			text = append(text, s.text...)
		default:
			value, ok := lookup(vars[s.root], s.path)
			if !ok && absent.lacks(s.text, true) != nil {
				return nil
			}
			text = appendValue(text, value, m)
		}
		if total+len(text) > maxRenderBytes {
			return nil
		}
	}
	return append(chunks, mime.NewChunk(text))
}
