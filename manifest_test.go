package fanfare

import (
	"reflect"
	"testing"
)

func TestManifestComesBackAsItWasFrozen(t *testing.T) {
	for name, m := range map[string]Manifest{
		"empty":       {Sections: []Section{}},
		"one":         {Sections: []Section{{Channel: 3, Template: 9, Members: []Member{{NewPlace(5, 7), []Place{NewPlace(5, 1)}}}}}},
		"an audience": {Sections: []Section{{Channel: 2, Members: []Member{{NewPlace(1, 7), []Place{}}, {NewPlace(1, 9), []Place{}}, {NewPlace(2, 1), []Place{}}}}}},
		"sections and several subscriptions": {Sections: []Section{
			{Channel: 1, Template: 2, Members: []Member{
				{NewPlace(0, 1), []Place{NewPlace(0, 900), NewPlace(0, 901)}},
				{NewPlace(63, MaxLocal), []Place{NewPlace(63, 0)}},
			}},
			{Channel: 65535, Template: 1 << 31, Members: []Member{{0, []Place{0, NewPlace(0, MaxLocal)}}}},
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
			if !reflect.DeepEqual(got, m) {
				t.Fatalf("got %+v, want %+v", got, m)
			}
			for cut := range b {
				if err := new(Manifest).UnmarshalBinary(b[:cut]); err == nil {
					t.Fatalf("the first %d of %d bytes passed as a manifest", cut, len(b))
				}
			}
		})
	}
}

func TestPositionCountsThroughSections(t *testing.T) {
	m := Manifest{Sections: []Section{
		{Channel: 1, Members: []Member{{Subscriber: 10}, {Subscriber: 11}}},
		{Channel: 2, Members: []Member{{Subscriber: 20}}},
	}}
	for position, want := range []Place{10, 11, 20} {
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
