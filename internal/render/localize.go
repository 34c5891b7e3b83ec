package render

import (
	"time"

	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/locale"
)

// voices are the writers of one mailing, one for each voice and variant in which
// recipients are written to.
type voices[W any] struct {
	template *Template
	prepare  func(*Template, *voice) (W, error)
	heard    map[hearer]*heard[W]
	spoken   map[speaker]*heard[W]
}

// A hearer is what of a recipient decides.
type hearer struct{ locale, zone, device string }

// A speaker is what it comes to.
type speaker struct {
	template     *Template
	locale, zone string
}

// heard is a writer, or what is wrong with the template in this voice: every message
// in it fails with that.
type heard[W any] struct {
	writer W
	err    error
}

// Limits of what is kept for the next recipients. Beyond them all is forgotten, and
// made again where it is needed.
const (
	maxSpeakers = 64
	maxHearers  = 4096
)

func newVoices[W any](t *Template, prepare func(*Template, *voice) (W, error)) *voices[W] {
	v := &voices[W]{template: t, prepare: prepare}
	v.forget()
	return v
}

func (v *voices[W]) forget() { v.heard, v.spoken = map[hearer]*heard[W]{}, map[speaker]*heard[W]{} }

// alike reports whether all recipients are written to in one voice.
func (t *Template) alike() bool { return t.widest == liquid.NotLocalized && len(t.variants) == 0 }

// of returns the writer for a recipient.
func (v *voices[W]) of(r *Recipient) (W, error) {
	who := hearer{locale: r.Locale}
	if v.template.widest == liquid.ByLanguageAndZone {
		who.zone = r.TimeZone
	}
	if v.template.byDevice {
		who.device = deviceOf(r)
	}
	known := v.heard[who]
	if known == nil {
		if len(v.spoken) >= maxSpeakers || len(v.heard) >= maxHearers {
			v.forget()
		}
		known = v.speaker(who)
		v.heard[who] = known
	}
	return known.writer, known.err
}

// speaker returns the writer for a hearer whom nobody has written to yet.
func (v *voices[W]) speaker(who hearer) *heard[W] {
	t := v.template.variantFor(who.locale, who.device)
	as := speaker{template: t}
	var in *voice
	if t.speech != liquid.NotLocalized {
		in = t.voiceFor(who.locale, who.zone)
		as.locale, as.zone = in.Locale.Tag(), in.Zone.String()
		if in.Locale.Digits() {
			as.locale = who.locale // it may ask for digits of its own
		}
	}
	if known := v.spoken[as]; known != nil {
		return known
	}
	made := &heard[W]{}
	made.writer, made.err = v.prepare(t, in)
	v.spoken[as] = made
	return made
}

// A voice is a localization, and the recipients that it is for.
type voice struct {
	liquid.Localization
	hearer hearer
}

// voiceFor returns the localization in which a template is written to somebody: the
// language of the template, as it is written in the recipient's region if the recipient
// has the same language, and the recipient's time zone.
func (t *Template) voiceFor(tag, zone string) *voice {
	own := t.lang
	if own == "" {
		own = locale.English
	}
	if locale.Language(tag) == locale.Language(own) {
		own = tag
	}
	v := &voice{liquid.Localization{Locale: locale.Find(own), Zone: time.UTC}, hearer{locale: tag, zone: zone}}
	if t.speech == liquid.ByLanguageAndZone && zone != "" {
		if known, err := time.LoadLocation(zone); err == nil { // the registry accepts no other
			v.Zone = known
		}
	}
	return v
}
