package state

import (
	"maps"
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
)

// ChooseChannel returns the channel that a request names. The error has the pointer /channel and
// suggests similar names.
func (r *Catalog) ChooseChannel(service, name string) (*catalog.Channel, error) {
	svc, err := r.config.Load().Service(service)
	if err != nil {
		return nil, err
	}
	if c, ok := svc.Channels[name]; ok {
		return c, nil
	}
	hint := inputerror.DidYouMean(name, maps.Keys(svc.Channels), "the service has no channels: apply a channel first")
	if name == "" {
		return nil, inputerror.Invalid("/channel", hint, "channel is missing")
	}
	return nil, inputerror.Invalid("/channel", hint, "unknown channel %s", inputerror.Quote(name))
}

// A TemplateChoice selects the versions of a template that a request may name.
type TemplateChoice int

const (
	ChooseReleased TemplateChoice = iota // the published version, or a former one as name@version
	ChooseAny                            // also name@draft, for trials
)

// ChooseTemplate returns the template that a request names: the published version, or
// name@version. The error has the pointer /template and suggests similar names.
func (r *Catalog) ChooseTemplate(service, name string, may TemplateChoice) (*catalog.TemplateSource, error) {
	conf := r.Configuration()
	svc, err := conf.Snapshot.Service(service)
	if err != nil {
		return nil, err
	}
	base, version, pinned := strings.Cut(name, "@")
	current, all := svc.Templates[base], conf.TemplateVersions(service, base)
	if current == nil && (len(all) == 0 || may != ChooseAny || !pinned) {
		return nil, inputerror.Invalid("/template", inputerror.DidYouMean(base, maps.Keys(svc.Templates), "the service has no templates: apply a template first"), "unknown template %s", inputerror.Quote(base))
	}
	if !pinned {
		return current, nil
	}
	number, err := strconv.Atoi(version)
	for _, v := range all {
		switch {
		case v.State == catalog.VersionDraft && (version == catalog.VersionDraft || err == nil && v.Version == number):
			if may != ChooseAny {
				return nil, inputerror.Invalid("/template", "to publish it, run fanfare template publish "+base, "%s is a draft and cannot be used to send messages", inputerror.Quote(name))
			}
			return v.TemplateSource, nil
		case err == nil && v.Version == number:
			return v.TemplateSource, nil
		}
	}
	if version == catalog.VersionDraft {
		return nil, inputerror.Invalid("/template", "to store a draft, run fanfare template draft "+base+" -f FILE", "template %s has no draft", inputerror.Quote(base))
	}
	if err != nil || number < 1 {
		return nil, inputerror.Invalid("/template", "write name@version, such as "+base+"@1", "template %s has no version %s", inputerror.Quote(base), inputerror.Quote(version))
	}
	return nil, catalog.NoSuchVersion("/template", base, number, all)
}
