package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// The rules of wording: standard terms instead of private ones, and sentences that have a
// subject and a verb. docs/reference/glossary.md has the standard terms.

const wordingReason = "a newcomer who meets a private word or a riddle cannot find the right file"

// privateTerms are words that the project once used for things that have a standard name.
var privateTerms = map[string]string{
	"album": "samples", "companions": "recipients of the same content", "dear": "expensive, or unindexed", "dearest": "most expensive", "desk": "queue",
	"door": "listener, or signupLimit", "house": "server", "ladder": "pipeline mode", "letter": "message", "letterbox": "mailbox", "lookout": "scratch",
	"mute": "not localized", "needle": "n-gram index", "noticing": "notifier", "outlet": "sender", "parcel": "transaction", "pile": "batch", "rehoused": "address change",
	"room": "capacity", "saboteur": "fault injector", "sheet": "temporary file", "slip": "pending write", "sour": "on all failed", "standstill": "broken driver",
	"strain": "latency detector", "tidings": "event batch", "unwell": "destination health", "voiced": "localized filter",
}

// opening matches a clause as the subject of a sentence.
var (
	opening     = regexp.MustCompile(`^(?:What|Whatever|Who|Whoever|Whom|Whose|That|Nothing that|Nobody who|Those who)\b`)
	sentenceEnd = regexp.MustCompile(`[.!?:]\s+|\n\n`)
)

// openings returns the sentences of a text that begin with a clause. Questions and "What to
// read next" may begin so.
func openings(text string) (found []string) {
	begin := 0
	for _, end := range append(sentenceEnd.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		sentence := strings.TrimSpace(text[begin:end[1]])
		if opening.MatchString(sentence) && !strings.HasSuffix(sentence, "?") && !strings.HasPrefix(sentence, "What to ") {
			found = append(found, sentence)
		}
		begin = end[1]
	}
	return found
}

// ordinary removes phrases in which a private term has its ordinary meaning.
var ordinary = strings.NewReplacer("layout: letter", "", "`letter`", "", "letters and digits", "", "letters, digits", "", "style sheet", "", "Style sheet", "", "Two-letter", "", "three-letter", "", "IsLetter", "")

// termsOf returns the private terms among the words of a text or the parts of a name.
func termsOf(text string) (found []string) {
	word := func(lower string) {
		if _, is := privateTerms[lower]; is {
			found = append(found, lower)
		} else if _, is := privateTerms[strings.TrimSuffix(lower, "s")]; is {
			found = append(found, lower)
		}
	}
	begin := 0
	runes := []rune(text)
	for i := 0; i <= len(runes); i++ {
		switch {
		case i == len(runes) || !unicode.IsLetter(runes[i]):
			word(strings.ToLower(string(runes[begin:i])))
			begin = i + 1
		case i > begin && unicode.IsUpper(runes[i]) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			word(strings.ToLower(string(runes[begin:i])))
			begin = i
		}
	}
	return found
}

// wording finds private terms and sentences without a subject.
func wording(f *file) []finding {
	switch {
	case f.dir() == "internal/test/arch", lockFiles.MatchString(f.path), strings.Contains(f.path, "/testdata/"), f.path == "docs/reference/glossary.md":
		return nil
	case f.isGo():
		return goWording(f)
	case strings.HasSuffix(f.path, ".md"):
		return proseWording(f)
	}
	return nil
}

// aboutNotify matches the files about GOV.UK Notify, which can also send printed letters.
var aboutNotify = regexp.MustCompile(`^internal/compat/notify/|^internal/(server|test/peers)/notify|^docs/(how-to/move-from-notify|reference/notify-api)\.md$`)

func (f *file) breaches(line int, text string, sentences bool) (found []finding) {
	for _, term := range termsOf(ordinary.Replace(metricName.ReplaceAllString(text, ""))) {
		if termKey(term) == "letter" && aboutNotify.MatchString(f.path) {
			continue
		}
		found = append(found, finding{f.path, line, "the private term " + strconv.Quote(term), wordingReason,
			"use the standard term (" + privateTerms[termKey(term)] + "), see docs/reference/glossary.md"})
	}
	if sentences {
		for _, sentence := range openings(text) {
			found = append(found, finding{f.path, line, "a sentence begins with a clause: " + sentence, wordingReason, "begin with the noun that acts"})
		}
	}
	return found
}

func termKey(term string) string {
	if _, is := privateTerms[term]; is {
		return term
	}
	return strings.TrimSuffix(term, "s")
}

func goWording(f *file) (found []finding) {
	for _, group := range f.ast.Comments {
		if text := group.Text(); text != "" {
			found = append(found, f.breaches(f.line(group.Pos()), text, true)...)
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			found = append(found, f.breaches(f.line(n.Pos()), n.Name, false)...)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && strings.Contains(text, " ") {
				found = append(found, f.breaches(f.line(n.Pos()), text, true)...)
			}
		}
		return true
	})
	return found
}

// fence begins or ends a block of code in Markdown.
var fence = regexp.MustCompile("^\\s*```")

// metricName matches the name of a metric, which is public and stays as it is.
var metricName = regexp.MustCompile(`\bfanfare_[a-z_]+`)

func proseWording(f *file) (found []finding) {
	inCode := false
	for i, line := range strings.Split(f.text, "\n") {
		if fence.MatchString(line) {
			inCode = !inCode
			continue
		}
		if !inCode && !strings.HasPrefix(line, "    ") {
			line = metricName.ReplaceAllString(line, "")
			found = append(found, f.breaches(i+1, strings.TrimLeft(line, "->| *"), true)...) // a heading, which has its "#" still, is no sentence
		}
	}
	return found
}

func TestWordingIsStandard(t *testing.T) {
	for _, f := range load(t) {
		report(t, wording(f))
	}
}

func TestWordingRulesSeeTheirBreaches(t *testing.T) {
	for _, c := range []struct {
		text  string
		terms int
		opens int
	}{
		{"Server holds the components in start order.", 0, 0},
		{"A house is what a start builds.", 1, 0},
		{"What was built is kept. Who asks is told.", 0, 2},
		{"What do you want to do?", 0, 0},
		{"openDoors", 1, 0},
		{"The event is stored. That is durable.", 0, 1},
		{"roommate, doorway and penhouse", 0, 0},
		{"HTTPOutlets", 1, 0},
		{"What to read next", 0, 0},
		{"smtp.parcels", 1, 0},
		{"`layout: letter` drops style sheets and allows letters and digits", 0, 0},
	} {
		if got := len(termsOf(ordinary.Replace(c.text))); got != c.terms {
			t.Errorf("%q has %d private terms, want %d", c.text, got, c.terms)
		}
		if got := len(openings(c.text)); got != c.opens {
			t.Errorf("%q has %d openings, want %d", c.text, got, c.opens)
		}
	}
}
