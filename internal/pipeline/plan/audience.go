package plan

import (
	"fanfare.dev/fanfare"
)

// Audience makes the manifests of a direct send: a member for each recipient,
// with no subscription. Each partition with members is in exactly one manifest.
func Audience(seq fanfare.EventSeq, d *fanfare.Direct) []fanfare.Manifest {
	var manifests []fanfare.Manifest
	for list := d.Recipients; len(list) > 0; {
		run := runOf(list, func(r fanfare.Recipient) fanfare.RowID { return r.Subscriber })
		section := fanfare.Section{Channel: d.Channel, Template: d.Template}
		section.Members.Grow(run, 0)
		for i := range list[:run] {
			section.Members.Add(list[i].Subscriber)
		}
		manifests = append(manifests, fanfare.Manifest{
			ID:       fanfare.NewManifestID(seq, list[0].Subscriber.Partition()),
			Sections: []fanfare.Section{section},
		})
		list = list[run:]
	}
	return manifests
}
