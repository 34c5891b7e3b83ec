package render

import (
	"time"

	"fanfare.dev/fanfare/internal/render/locale"
)

// A voice is in which language, and on whose clock, a message is written.
type voice struct {
	locale *locale.Locale
	zone   *time.Location

	hearer hearer // to whom
}

// voiceVariable is where the filters that speak find the voice. No template can
// name it.
const voiceVariable = "fanfare_voice"

// A speech says what of a voice a stretch of a template needs.
type speech uint8

const (
	mute   speech = iota
	spoken        // the language
	zoned         // the clock too
)

// voiceFor is in which a template is written to somebody: the language is that of
// the text, spoken as in the recipient's region where it is theirs too.
func (t *Template) voiceFor(tag, zone string) *voice {
	own := t.lang
	if own == "" {
		own = locale.English
	}
	if locale.Language(tag) == locale.Language(own) {
		own = tag
	}
	v := &voice{locale: locale.Find(own), zone: time.UTC, hearer: hearer{locale: tag, zone: zone}}
	if t.speech == zoned && zone != "" {
		if known, err := time.LoadLocation(zone); err == nil { // the registry keeps no other
			v.zone = known
		}
	}
	return v
}
