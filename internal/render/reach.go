package render

import "strings"

// A reach says for whom a stretch of a message is the same.
type reach uint8

const (
	ofAll       reach = iota // who gets the mailing
	ofItem                   // a loop over items that says the same of each, whichever stand beside it
	ofTally                  // who has as many items
	ofList                   // who has the same items
	ofRecipient              // nobody else
)

// reach says whose value the path leads to. A loop over items reads nothing of them
// by itself.
func (p path) reach() reach {
	switch p.root {
	case "sub", "subscriber", "subscription", "subscriptions", "unsubscribe_url", "preferences_url", fieldsVariable:
		return ofRecipient
	case "count", "more":
		return ofTally
	case "items":
		switch s := p.segments; {
		case len(s) == 1 && s[0].name == "size":
			return ofTally
		case p.looped && len(s) == 0, len(s) > 1 && (s[1].name == "event" || s[1].name == "meta"):
			return ofList
		}
		return ofRecipient // the subscriptions of an item, or all there is of it
	}
	return ofAll
}

// reachOf is the widest reach that all paths together have.
func reachOf(paths []path) (widest reach) {
	for _, p := range paths {
		widest = max(widest, p.reach())
	}
	return widest
}

// reach says for whom the unit is the same.
func (u *unit) reach() reach {
	r := reachOf(u.paths)
	if r == ofList && u.perItem() {
		return ofItem
	}
	return r
}

// perItem reports whether the unit is a loop over items whose turns know nothing of
// each other.
func (u *unit) perItem() bool {
	if u.over == "" || u.ordered {
		return false
	}
	loops := 0
	for _, p := range u.paths {
		own := strings.HasPrefix(p.text, u.over+".") || strings.HasPrefix(p.text, u.over+"[")
		switch {
		case p.root == "items" && p.looped && len(p.segments) == 0:
			loops++
		case p.reach() != ofAll && !own:
			return false
		case strings.HasPrefix(p.text, "forloop"):
			return false
		}
	}
	return loops == 1
}
