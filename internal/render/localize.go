package render

import (
	"time"

	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/locale"
)

// writersByLocalization are the writers of one mailing, one for each voice and variant in which
// recipients are written to.
type writersByLocalization[W any] struct {
	template *Template
	prepare  func(*Template, *readerLocalization) (W, error)
	byReader map[reader]*cachedWriter[W]
	byKey    map[writerKey]*cachedWriter[W]
}

// A hearer is what of a recipient decides.
type reader struct{ locale, zone, device string }

// A speaker is what it comes to.
type writerKey struct {
	template     *Template
	locale, zone string
}

// cachedWriter is a writer, or what is wrong with the template in this voice: every message
// in it fails with that.
type cachedWriter[W any] struct {
	writer W
	err    error
}

// Limits of what is kept for the next recipients. Beyond them all is forgotten, and
// made again where it is needed.
const (
	maxWriters = 64
	maxReaders = 4096
)

func newWritersByLocalization[W any](t *Template, prepare func(*Template, *readerLocalization) (W, error)) *writersByLocalization[W] {
	v := &writersByLocalization[W]{template: t, prepare: prepare}
	v.forget()
	return v
}

func (v *writersByLocalization[W]) forget() {
	v.byReader, v.byKey = map[reader]*cachedWriter[W]{}, map[writerKey]*cachedWriter[W]{}
}

// needsNoLocalization reports whether all recipients are written to in one voice.
func (t *Template) needsNoLocalization() bool {
	return t.localizedAny == liquid.NotLocalized && len(t.variants) == 0
}

// of returns the writer for a recipient.
func (v *writersByLocalization[W]) of(r *Recipient) (W, error) {
	who := reader{locale: r.Locale}
	if v.template.localizedAny == liquid.ByLanguageAndZone {
		who.zone = r.TimeZone
	}
	if v.template.byDevice {
		who.device = deviceOf(r)
	}
	known := v.byReader[who]
	if known == nil {
		if len(v.byKey) >= maxWriters || len(v.byReader) >= maxReaders {
			v.forget()
		}
		known = v.writerFor(who)
		v.byReader[who] = known
	}
	return known.writer, known.err
}

// writerFor returns the writer for a hearer whom nobody has written to yet.
func (v *writersByLocalization[W]) writerFor(who reader) *cachedWriter[W] {
	t := v.template.variantFor(who.locale, who.device)
	as := writerKey{template: t}
	var in *readerLocalization
	if t.localized != liquid.NotLocalized {
		in = t.localizationFor(who.locale, who.zone)
		as.locale, as.zone = in.Locale.Tag(), in.Zone.String()
		if in.Locale.HasDigitSystems() {
			as.locale = who.locale // it may ask for digits of its own
		}
	}
	if known := v.byKey[as]; known != nil {
		return known
	}
	made := &cachedWriter[W]{}
	made.writer, made.err = v.prepare(t, in)
	v.byKey[as] = made
	return made
}

// A voice is a localization, and the recipients that it is for.
type readerLocalization struct {
	liquid.Localization
	reader reader
}

// localizationFor returns the localization in which a template is written to somebody: the
// language of the template, as it is written in the recipient's region if the recipient
// has the same language, and the recipient's time zone.
func (t *Template) localizationFor(tag, zone string) *readerLocalization {
	own := t.language
	if own == "" {
		own = locale.English
	}
	if locale.Language(tag) == locale.Language(own) {
		own = tag
	}
	v := &readerLocalization{liquid.Localization{Locale: locale.Find(own), Zone: time.UTC}, reader{locale: tag, zone: zone}}
	if t.localized == liquid.ByLanguageAndZone && zone != "" {
		if known, err := time.LoadLocation(zone); err == nil { // the registry accepts no other
			v.Zone = known
		}
	}
	return v
}
