package notifytext

import "strings"

// Subject returns the subject of a mail: values inserted, lists as a sentence, typographic
// quotes and dashes, single spaces.
func (t *Text) Subject(values Values) string {
	pieces := []piece{{kind: words, text: strings.Join(strings.Fields(t.insert(values, false)), " ")}}
	setTypography(pieces)
	return strings.TrimSpace(pieces[0].text)
}

// Content returns the body of a mail as its source with the values: Markdown stays Markdown,
// lists become bullets.
func (t *Text) Content(values Values) string {
	return strings.TrimSpace(t.insert(values, true))
}
