package registry

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// ChooseChannel returns the channel that a request names. The error has the
// pointer /channel and says which were near.
func (r *Registry) ChooseChannel(service, name string) (*Channel, error) {
	svc, err := r.config.Load().service(service)
	if err != nil {
		return nil, err
	}
	if c, ok := svc.channels[name]; ok {
		return c, nil
	}
	hint := didYouMean(name, maps.Keys(svc.channels), "the service has no channels, apply one first")
	if name == "" {
		return nil, invalid("/channel", hint, "channel is missing")
	}
	return nil, invalid("/channel", hint, "unknown channel %s", quote(name))
}

// ChooseTemplate returns the template that a request names: the current version
// of a name, or name@version. The error has the pointer /template and says which
// were near.
func (r *Registry) ChooseTemplate(service, name string) (*TemplateSource, error) {
	conf := r.config.Load()
	svc, err := conf.service(service)
	if err != nil {
		return nil, err
	}
	base, version, pinned := strings.Cut(name, "@")
	current := svc.templates[base]
	if current == nil {
		return nil, invalid("/template", didYouMean(base, maps.Keys(svc.templates), "the service has no templates, apply one first"), "unknown template %s", quote(base))
	}
	if !pinned {
		return current, nil
	}
	number, err := strconv.Atoi(version)
	if err != nil || number < 1 || number > current.Version {
		return nil, invalid("/template", fmt.Sprintf("versions 1 to %d are there", current.Version), "template %s has no version %s", quote(base), quote(version))
	}
	for _, t := range conf.templates {
		if t.Service == service && t.Name == base && t.Version == number {
			return t, nil
		}
	}
	return nil, invalid("/template", fmt.Sprintf("version %d is the current one", current.Version), "version %d of template %s is gone", number, quote(base))
}
