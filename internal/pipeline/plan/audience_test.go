package plan

import (
	"testing"

	"fanfare.dev/fanfare"
)

func TestEachOfAnAudienceIsOneMemberWithoutSubscriptions(t *testing.T) {
	d := &fanfare.Direct{Channel: 3, Template: 9}
	for p := range fanfare.Partitions {
		for i := range uint32(160) {
			d.Recipients = append(d.Recipients, fanfare.Recipient{Subscriber: place(p, i)})
		}
	}
	manifests := Audience(7, d)
	if len(manifests) != 2 {
		t.Errorf("got %d manifests, want 2: whole partitions, of 8192 members at most", len(manifests))
	}
	at := 0
	for _, m := range manifests {
		if m.ID != fanfare.NewManifestID(7, d.Recipients[at].Subscriber.Partition()) {
			t.Errorf("manifest %x begins with partition %d", uint64(m.ID), d.Recipients[at].Subscriber.Partition())
		}
		for position := range uint32(m.Members()) {
			section, member, _ := m.At(position)
			if section.Channel != 3 || section.Template != 9 || member.Subscriber != d.Recipients[at].Subscriber || len(member.Subscriptions) != 0 {
				t.Fatalf("member %d is %+v of channel %d, template %d", at, member, section.Channel, section.Template)
			}
			at++
		}
	}
	if at != len(d.Recipients) {
		t.Errorf("%d members, want %d", at, len(d.Recipients))
	}
}
