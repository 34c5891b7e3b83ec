package apply

import (
	"fmt"
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/inputerror"
)

// Notes tells the user about settings of the document that have no effect or an effect that is easy
// to miss.
func (pl *Plan) Notes() []string {
	return slices.Concat(pl.approvalNotes(), pl.draftNotes(), pl.fileNotes(), pl.templateNotes(), pl.roleNotes())
}

// approvalNotes returns notes about approval settings that have no effect. They take effect once
// hold_above is set, possibly by another document.
func (pl *Plan) approvalNotes() (notes []string) {
	if pl.Service.Approval.HoldAbove > 0 {
		return nil
	}
	if exempt := pl.Document.HoldExemptUrgent; exempt != nil && *exempt {
		notes = append(notes, "hold_exempt_urgent of the service has no effect: the service has no hold_above, so no broadcast waits for approval")
	}
	for _, name := range slices.Sorted(maps.Keys(pl.Document.Topics)) {
		if t := pl.Document.Topics[name]; t != nil && !t.Delete && t.HoldExemptUrgent && t.HoldAbove == 0 {
			notes = append(notes, "hold_exempt_urgent of topic "+name+" has no effect: neither the topic nor the service has a hold_above, so no broadcast waits for approval")
		}
	}
	return notes
}

// fileNotes returns notes about templates in the document whose files are not sent over webhook
// channels.
func (pl *Plan) fileNotes() (notes []string) {
	var programs []string
	for _, ch := range catalog.SortedValues(pl.Service.Channels) {
		if ch.SendsDocuments() {
			programs = append(programs, ch.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pl.Document.Templates)) {
		spec := pl.Document.Templates[name]
		if len(programs) > 0 && !spec.Delete && len(spec.AllFiles()) > 0 {
			notes = append(notes, "template "+inputerror.Quote(name)+" has files, which are sent by mail but not over the webhook channel "+inputerror.Quote(programs[0]))
		}
	}
	return notes
}

// roleNotes returns notes about roles in the document for people of an issuer with which nobody can sign in.
func (pl *Plan) roleNotes() (notes []string) {
	if pl.Document.Roles == nil {
		return nil
	}
	told := map[string]bool{}
	for _, g := range *pl.Document.Roles {
		if !told[g.Issuer] && !slices.Contains(pl.opt.Issuers, g.Issuer) {
			notes = append(notes, "the roles for people of the issuer "+inputerror.Quote(g.Issuer)+" have no effect: the server does not know this issuer. To change that, add it to the file in the setting oidc; its URL must be the same there")
		}
		told[g.Issuer] = true
	}
	return notes
}

// templateNotes returns notes about topics that lose their template. A document replaces a whole
// topic, but an author who writes only a part of it probably wants to keep the rest.
func (pl *Plan) templateNotes() (notes []string) {
	before := pl.From.Services[pl.Service.Name]
	if before == nil || !slices.ContainsFunc(catalog.SortedValues(pl.Service.Channels), func(ch *catalog.Channel) bool { return !ch.SendsDocuments() }) {
		return nil // programs need no template
	}
	for _, name := range slices.Sorted(maps.Keys(pl.Document.Topics)) {
		old, now := before.Topics[name], pl.Service.Topics[name]
		if old != nil && now != nil && old.Template != "" && now.Template == "" {
			notes = append(notes, "topic "+name+" no longer has a template, because the document defines the topic without one: messages to its subscribers fail until the topic has a template")
		}
	}
	return notes
}

// draftNotes returns notes about templates that the document publishes although they also have a
// draft.
func (pl *Plan) draftNotes() (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(pl.Document.Templates)) {
		d, published := (catalog.Configuration{Snapshot: pl.To}).Draft(pl.Service.Name, name), pl.Service.Templates[name]
		if d == nil || published == nil || pl.Document.Templates[name].Action != document.ActionApply {
			continue
		}
		note := fmt.Sprintf("template %s has a draft (version %d), which this document does not change; to compare them, run `fanfare template diff %s`", name, d.Version, name)
		if d.Base != published.Version {
			note += fmt.Sprintf("; the draft is based on version %d and must be stored again before it can be published", d.Base)
		}
		notes = append(notes, note)
	}
	return notes
}
