package fanfare

import (
	"fmt"
	"slices"
	"testing"
)

func TestManifestComesBackAsItWasFrozen(t *testing.T) {
	for name, m := range map[string]Manifest{
		"empty":       {Sections: []Section{}},
		"one":         {Sections: []Section{{Channel: 3, Template: 9, Members: MembersOf(Member{Subscriber: NewRowID(5, 7), Subscriptions: []RowID{NewRowID(5, 1)}})}}},
		"an audience": {Sections: []Section{{Channel: 2, Members: MembersOf(Member{Subscriber: NewRowID(1, 7)}, Member{Subscriber: NewRowID(1, 9)}, Member{Subscriber: NewRowID(2, 1)})}}},
		"sections and several subscriptions": {Sections: []Section{
			{Channel: 1, Template: 2, Members: MembersOf(
				Member{Subscriber: NewRowID(0, 1), Subscriptions: []RowID{NewRowID(0, 900), NewRowID(0, 901)}},
				Member{Subscriber: NewRowID(63, MaxLocal), Subscriptions: []RowID{NewRowID(63, 0)}},
			)},
			{Channel: 65535, Template: 1 << 31, Members: MembersOf(Member{Subscriptions: []RowID{0, NewRowID(0, MaxLocal)}})},
		}},
		"items": {Sections: []Section{
			{Channel: 1, Template: 2, Members: MembersOf(
				Member{Subscriber: 5, Subscriptions: []RowID{3, 9}, Items: []Item{{0, 3}, {0, 9}, {7, 9}}, More: 12},
				Member{Subscriber: 6, Subscriptions: []RowID{4}, Items: []Item{{1<<32 - 1, 4}}},
			)},
			{Channel: 2, Members: MembersOf(Member{Subscriber: 5, Subscriptions: []RowID{8}, Items: []Item{{2, 8}}})},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := m.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			var got Manifest
			if err := got.UnmarshalBinary(b); err != nil {
				t.Fatal(err)
			}
			if got, want := shown(&got), shown(&m); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			for cut := range b {
				if err := new(Manifest).UnmarshalBinary(b[:cut]); err == nil {
					t.Fatalf("the first %d of %d bytes passed as a manifest", cut, len(b))
				}
			}
		})
	}
}

// shown returns the full content of a manifest as text.
func shown(m *Manifest) string {
	text := fmt.Sprint(m.ID)
	for i := range m.Sections {
		s := &m.Sections[i]
		text += fmt.Sprintf(" section %d %d:", s.Channel, s.Template)
		for member := range s.Members.All() {
			text += fmt.Sprintf(" %+v", member)
		}
	}
	return text
}

func TestAManifestWithoutItemsIsWrittenAsBefore(t *testing.T) {
	m := Manifest{Sections: []Section{{Channel: 1, Members: MembersOf(Member{Subscriber: 5, Subscriptions: []RowID{5}})}}}
	if b, err := m.AppendBinary(nil); err != nil || !slices.Equal(b, []byte{1, 1, 1, 0, 1, 5, 1, 10}) {
		t.Errorf("written as %v, %v", b, err)
	}
}

func TestMembersWithAndWithoutItemsKeepTheirOwn(t *testing.T) {
	var list Members
	list.Add(1, 10)
	list.AddMember(Member{Subscriber: 2, Subscriptions: []RowID{20}, Items: []Item{{4, 20}}, More: 3})
	list.Add(3, 30)
	for i, want := range []string{"{1 [10] [] 0}", "{2 [20] [{4 20}] 3}", "{3 [30] [] 0}"} {
		if got := fmt.Sprint(list.At(i)); got != want {
			t.Errorf("member %d: %s, want %s", i, got, want)
		}
	}
}

func TestPositionCountsThroughSections(t *testing.T) {
	m := Manifest{Sections: []Section{
		{Channel: 1, Members: MembersOf(Member{Subscriber: 10}, Member{Subscriber: 11})},
		{Channel: 2, Members: MembersOf(Member{Subscriber: 20})},
	}}
	for position, want := range []RowID{10, 11, 20} {
		if _, member, ok := m.At(uint32(position)); !ok || member.Subscriber != want {
			t.Errorf("position %d: got %v, want %d", position, member, want)
		}
	}
	if _, _, ok := m.At(3); ok {
		t.Error("position 3 is behind the end and was found")
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte{1, 1, 1, 1, 1, 5, 1, 10})
	f.Add([]byte{2, 1, 1, 1, 1, 5, 2, 10, 2, 3, 2, 0, 1, 7, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Manifest
		if m.UnmarshalBinary(b) != nil {
			return
		}
		again, err := m.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var m2 Manifest
		if err := m2.UnmarshalBinary(again); err != nil {
			t.Fatalf("a manifest that was read cannot be read again: %v", err)
		}
	})
}
