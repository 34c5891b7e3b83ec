package evaluator

import (
	"regexp"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
)

// leftToTheResolver are errors of cel-go's parser about macros. The evaluator reports them when it
// resolves names.
var leftToTheResolver = []string{"argument must be a simple name", "argument is not an identifier",
	"invalid argument to has() macro", "overwrites accumulator"}

// outside is CEL syntax that conditions do not support.
var outside = regexp.MustCompile("messages are not part of the language")

// parsesAlike checks that both parsers accept a text, or both refuse it.
func parsesAlike(t *testing.T, env *cel.Env, text string) (taken bool) {
	t.Helper()
	_, err := parse(text)
	_, issues := env.Parse(text)
	if (err == nil) == (issues.Err() == nil) {
		return err == nil
	}
	if issues.Err() != nil {
		message := issues.Err().Error()
		for _, left := range leftToTheResolver {
			if strings.Contains(message, left) {
				return false
			}
		}
		if strings.Contains(message, "recursion") || strings.Contains(message, "limit") {
			return false
		}
	}
	if err != nil && outside.MatchString(err.Error()) {
		return false
	}
	t.Errorf("%q\nhere: %v\ncel-go: %v", text, err, issues.Err())
	return false
}

// fragments are inserted into texts to produce texts that are almost CEL.
var fragments = []string{"(", ")", "[", "]", "{", "}", ",", ".", ":", "?", "!", "-", "+", "*", "/", "%", "==", "!=", "<", "<=", "&&", "||", "=",
	"in", "true", "null", "if", "event", "x", "_a1", "`a-b`", "`", "0", "1", "0x", "0x1f", "1u", "1.5", ".5", "1.", "1e", "1e5", "1e+", "9223372036854775808",
	"18446744073709551616u", "1e999", "'", `"`, "'''", `"""`, "r'", "b'", "br'", "rb'", `\n`, `\x4`, `\u00e9`, `\101`, `\8`, "\\", "\n", "\r", "\t", " ", "\f", "//", "é", "\x00",
	"has(", ".map(", "size(", "@", "$", "#", ";", "&", "|"}

// mutated changes a text at some positions.
func (g *generator) mutated(text string) string {
	for range 1 + g.IntN(3) {
		at := g.IntN(len(text) + 1)
		end := min(len(text), at+g.IntN(4))
		switch g.IntN(3) {
		case 0:
			text = text[:at] + text[end:]
		case 1:
			text = text[:at] + g.one(fragments...) + text[at:]
		default:
			text = text[:at] + g.one(fragments...) + text[end:]
		}
	}
	return strings.ToValidUTF8(text, "")
}

func TestTheParserAcceptsWhatCELAccepts(t *testing.T) {
	env, g := celEnv(t), newGenerator(*seed)
	taken := 0
	for range *cases * 3 {
		text := ""
		if g.chance(3) {
			for range 1 + g.IntN(8) {
				text += g.one(fragments...)
			}
			text = strings.ToValidUTF8(text, "")
		} else {
			text = g.mutated(g.boolean(g.IntN(3)))
		}
		if parsesAlike(t, env, text) {
			taken++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of %d texts taken", taken, *cases*3)
}

// FuzzCondition searches for a text that only one of the two parsers accepts, and for one that
// breaks the evaluator.
func FuzzCondition(f *testing.F) {
	for _, text := range []string{"event.a == 1 && b in [1, 2u, .5]", "event.l.all(x, x.`a-b` ? true : has(x.y))",
		`r'a\' == b'''\xff''' || !(-1 < -x[0])`, "geo.within(1, 2, 3, 4, 5) // here\n || crosses(event.a, 3)", "{'a': 1}.a == \"\\u00e9\""} {
		f.Add(text)
	}
	g := newGenerator(1)
	for range 20 {
		f.Add(g.condition())
	}
	env, err := cel.NewEnv()
	if err != nil {
		f.Fatal(err)
	}
	topic, err := NewTopic([]byte(`{"properties":{"a":{"type":"integer"},"b":{}}}`))
	if err != nil {
		f.Fatal(err)
	}
	in, err := topic.Event(Event{Data: []byte(`{"a":1,"l":[1,"a",{"b":2}],"b":{"a":"x"}}`), Attributes: attributes})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 {
			return // the product takes 4096 bytes; long texts only take longer
		}
		if _, err := parse(text); err == nil || strings.ToValidUTF8(text, "") == text {
			parsesAlike(t, env, text)
		}
		c, err := topic.Condition(text, nil)
		if err != nil {
			return
		}
		want := c.Evaluate(in, nil)
		if got := batchResult(t, 0, first(NewBatch(topic, []*Input{in}), c)...); got != want.Result {
			t.Errorf("%q is %s, in a batch %s", text, want.Result, got)
		}
	})
}

// first evaluates a condition in a batch and returns the sets.
func first(b *Batch, c *Condition) [][]uint64 {
	true_, error_, undecided := b.Evaluate(c, nil)
	return [][]uint64{true_, error_, undecided}
}
