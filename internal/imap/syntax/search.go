package syntax

import (
	"slices"
	"strings"
)

func (d *decoder) search() any {
	a := &Search{}
	if d.word("RETURN") {
		a.Return = true
		d.space()
		d.list(func() {
			name := d.keyword()
			if d.ok() && !slices.Contains([]string{"MIN", "MAX", "ALL", "COUNT", "SAVE"}, name) {
				d.fail("the result option %s is not known", name)
			}
			a.Options = append(a.Options, name)
		})
		d.space()
	}
	if d.word("CHARSET") {
		d.space()
		a.Charset = strings.ToUpper(d.astring())
		d.space()
	}
	a.Key = &Key{Kind: KeyAnd}
	for d.ok() {
		a.Key.Keys = append(a.Key.Keys, d.key(0))
		if !d.more() {
			break
		}
	}
	return a
}

// word consumes a word that is followed by a space.
func (d *decoder) word(w string) bool {
	if n := len(w); len(d.b)-d.i > n && d.b[d.i+n] == ' ' && strings.EqualFold(string(d.b[d.i:d.i+n]), w) {
		d.i += n
		return true
	}
	return false
}

// flagKeys are the keys for system flags.
var flagKeys = map[string]Key{
	"ANSWERED": {Text: `\Answered`}, "UNANSWERED": {Text: `\Answered`, Not: true},
	"DELETED": {Text: `\Deleted`}, "UNDELETED": {Text: `\Deleted`, Not: true},
	"DRAFT": {Text: `\Draft`}, "UNDRAFT": {Text: `\Draft`, Not: true},
	"FLAGGED": {Text: `\Flagged`}, "UNFLAGGED": {Text: `\Flagged`, Not: true},
	"SEEN": {Text: `\Seen`}, "UNSEEN": {Text: `\Seen`, Not: true},
}

func (d *decoder) key(depth int) *Key {
	d.keys++
	if depth > maxDepth || d.keys > maxKeys {
		d.fail("the search is too complex: use at most %d keys in %d levels", maxKeys, maxDepth)
		return &Key{}
	}
	if c := d.peek(); c == '(' {
		k := &Key{Kind: KeyAnd}
		d.list(func() { k.Keys = append(k.Keys, d.key(depth+1)) })
		if d.ok() && len(k.Keys) == 0 {
			d.fail("a search key is missing")
		}
		return k
	} else if c == '*' || c == '$' || c >= '0' && c <= '9' {
		return &Key{Kind: KeySeq, Set: d.numSet()}
	}
	name := d.keyword()
	if k, is := flagKeys[name]; is {
		k.Kind = KeyFlag
		return &k
	}
	return d.keyWithArguments(name, depth)
}

func (d *decoder) keyWithArguments(name string, depth int) *Key {
	switch name {
	case "ALL", "NEW", "RECENT":
		return &Key{Kind: name}
	case "OLD":
		return &Key{Kind: KeyRecent, Not: true}
	}
	d.space()
	k := &Key{Kind: name}
	switch name {
	case "NOT":
		k.Keys = []*Key{d.key(depth + 1)}
	case "OR":
		k.Keys = []*Key{d.key(depth + 1), nil}
		d.space()
		k.Keys[1] = d.key(depth + 1)
	case "UID":
		k.Set = d.numSet()
	case "KEYWORD", "UNKEYWORD":
		*k = Key{Kind: KeyFlag, Text: d.run(isAstringChar), Not: name == "UNKEYWORD"}
		if k.Text == "" {
			d.fail("a keyword is missing; system flags have keys of their own")
		}
	case "BODY", "TEXT":
		k.Text = d.astring()
	case "BCC", "CC", "FROM", "SUBJECT", "TO":
		*k = Key{Kind: KeyHeader, Field: name, Text: d.astring()}
	case "HEADER":
		k.Field = d.astring()
		d.space()
		k.Text = d.astring()
	case "LARGER", "SMALLER":
		k.Number = d.number()
	case "OLDER", "YOUNGER":
		k.Number = uint64(d.nonZero())
	case "BEFORE", "ON", "SINCE":
		k.Date = d.date()
	case "SENTBEFORE", "SENTON", "SENTSINCE":
		*k = Key{Kind: KeySent, Text: strings.TrimPrefix(name, "SENT"), Date: d.date()}
	case "SAVEDBEFORE", "SAVEDON", "SAVEDSINCE":
		*k = Key{Kind: KeySaved, Text: strings.TrimPrefix(name, "SAVED"), Date: d.date()}
	case "MODSEQ":
		if d.peek() == '"' { // the name and the type of an entry, which RFC 7162 permits to ignore
			d.quoted()
			d.space()
			if t := d.keyword(); d.ok() && t != "PRIV" && t != "SHARED" && t != "ALL" {
				d.fail("the entry type %s is not known", t)
			}
			d.space()
		}
		k.Number = d.number()
	case "EMAILID", "THREADID":
		k.Text = d.astring()
	default:
		d.fail("the search key %s is not known", name)
	}
	return k
}
