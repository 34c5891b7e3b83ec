package generate

import (
	"fanfare.dev/fanfare"
)

// Audience makes the manifests of a direct send: a member for each recipient,
// with no subscription. Each partition with members is in exactly one manifest.
func Audience(seq fanfare.EventSeq, d *fanfare.Direct) []fanfare.Manifest {
	list := make([]wanted, len(d.Recipients))
	for i := range d.Recipients {
		list[i].subscriber = d.Recipients[i].Subscriber
	}
	var manifests []fanfare.Manifest
	for len(list) > 0 {
		run := runOf(list)
		section := fanfare.Section{Channel: d.Channel, Template: d.Template, Members: make([]fanfare.Member, run)}
		for i, w := range list[:run] {
			section.Members[i].Subscriber = w.subscriber
		}
		manifests = append(manifests, fanfare.Manifest{
			ID:       fanfare.NewManifestID(seq, list[0].subscriber.Partition()),
			Sections: []fanfare.Section{section},
		})
		list = list[run:]
	}
	return manifests
}
