package httpapi

import (
	"encoding/base64"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
)

func TestPagesAreTheWholeListInOrder(t *testing.T) {
	l := listingOf("things", "news")
	all := []string{"a", "b", "c", "d", "e"}
	for limit := 1; limit <= 6; limit++ {
		p := Page{Limit: limit}
		var got []string
		for {
			page, next, err := pageOf(l, &p, all, func(s *string) string { return *s })
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, page...); next == "" {
				break
			}
			if len(page) != limit {
				t.Errorf("%d on a page of %d", len(page), limit)
			}
			p.Cursor = next
		}
		if !slices.Equal(got, all) {
			t.Errorf("by %d: %v", limit, got)
		}
	}
}

func TestAPageGoesOnWhereItEndedAlsoWhenThatIsGone(t *testing.T) {
	l := listingOf("things", "news")
	page, _, err := pageOf(l, &Page{Limit: 9, Cursor: l.cursor("b")}, []string{"a", "aa", "c"}, func(s *string) string { return *s })
	if err != nil || !slices.Equal(page, []string{"c"}) {
		t.Errorf("%v %v", page, err)
	}
}

func TestForeignAndDamagedCursorsAreRefused(t *testing.T) {
	l := listingOf("things", "news", "topic=quakes")
	good := l.cursor("the key")
	if key, err := l.key(good); err != nil || key != "the key" {
		t.Fatalf("%q %v", key, err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(good)
	raw[0]++
	newer := base64.RawURLEncoding.EncodeToString(raw)
	raw[0]--
	raw[len(raw)-1]++
	changed := base64.RawURLEncoding.EncodeToString(raw)
	for name, cursor := range map[string]string{
		"another list":    listingOf("others", "news", "topic=quakes").cursor("the key"),
		"another service": listingOf("things", "other", "topic=quakes").cursor("the key"),
		"another filter":  listingOf("things", "news", "topic=floods").cursor("the key"),
		"another version": newer, "changed": changed, "cut": good[:len(good)-2], "no base64": "!!", "too short": "AQ",
	} {
		if key, err := l.key(cursor); fanfare.CodeOf(err) != fanfare.Invalid || key != "" {
			t.Errorf("%s: %q %v", name, key, err)
		}
	}
}
