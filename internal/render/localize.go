package render

import (
	"time"

	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/locale"
)

// writersByLocalization holds the writers of one batch: one for each variant, language and time
// zone of a recipient. All share the template.
type writersByLocalization[W any] struct {
	template *Template
	prepare  func(*Template, *readerLocalization) (W, error)
	byReader map[reader]*cachedWriter[W]
	byKey    map[writerKey]*cachedWriter[W]
}

// A reader is what decides about the writer of a recipient.
type reader struct{ locale, zone, device string }

// A writerKey is the variant and the localization that a reader gets.
type writerKey struct {
	template     *Template
	locale, zone string
}

// A cachedWriter is a writer, or the error with which every message of this localization fails.
type cachedWriter[W any] struct {
	writer W
	err    error
}

// Limits of the caches. A cache that reaches its limit is emptied.
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

// needsNoLocalization reports whether all recipients get the same language and time zone.
func (t *Template) needsNoLocalization() bool {
	return t.localizedAny == liquid.NotLocalized && len(t.variants) == 0
}

// of returns the writer of a recipient.
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

// writerFor returns the writer of a reader that is not in the cache.
func (v *writersByLocalization[W]) writerFor(who reader) *cachedWriter[W] {
	t := v.template.variantFor(who.locale, who.device)
	as := writerKey{template: t}
	var in *readerLocalization
	if t.localized != liquid.NotLocalized {
		in = t.localizationFor(who.locale, who.zone)
		as.locale, as.zone = in.Locale.Tag(), in.Zone.String()
		if in.Locale.HasDigitSystems() {
			as.locale = who.locale // the tag may ask for its own digits
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

// A readerLocalization is a localization with the reader that it was made for.
type readerLocalization struct {
	liquid.Localization
	reader reader
}

// localizationFor returns the localization of the template for a reader. The language is the
// one of the template, in the form of the reader's region if the reader has the same language.
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
