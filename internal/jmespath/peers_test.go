//go:build peers

package jmespath

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// A deviation is a way in which we differ from the library on purpose.
type deviation struct {
	what   string
	occurs func(expression string, data any) bool
}

func matching(pattern string) func(string, any) bool {
	compiled := regexp.MustCompile(pattern)
	return func(expression string, _ any) bool { return compiled.MatchString(expression) }
}

var deviations = []deviation{
	{"objects have no order: their keys and values are sorted", matching(`\b(keys|values|to_string|max_by|min_by|sort_by)\(|(^|[^\w\]"'` + "`" + `@)]\s*|\.)\*`)},
	{"the library evaluates a max_by or min_by of texts to undefined", matching(`\b(max|min)_by\(`)},
	{"max and min of texts use the order of code units, not that of a language", matching(`\b(max|min)\(`)},
	{"the library replaces only the first escaped quote of a text", matching(`\\'.*\\'`)},
	{"the library reads (@.a) as two expressions, and (a b) as the first of two", matching(`[(,]\s*@\s*[^)\s,]|\(\s*[^()]* [^()]*\)`)},
	{"the library finds members that every JavaScript object has", matching(`\b(constructor|toString|valueOf|hasOwnProperty|__\w+__)\b`)},
	{"merge of a text or a list is an error", matching(`\bmerge\(`)},
	{"a dot at the end and a lone minus are syntax errors", matching(`\.\s*[)\]|&]|\.\s*$|\[-\]`)},
}

// A question is an expression with its data.
type question struct {
	Expression string `json:"expression"`
	Data       any    `json:"data"`
}

type answer struct {
	Result any     `json:"result"`
	Error  *string `json:"error"`
}

// libraryAnswers returns the answers of the library.
func libraryAnswers(t *testing.T, questions []question) []answer {
	t.Helper()
	library, err := filepath.Abs(filepath.Join("..", "..", ".peers", "notifybc", "node_modules", "jmespath"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(library); err != nil {
		t.Fatalf("%v: run .ci/notifybc-tools first", err)
	}
	var lines, complaints bytes.Buffer
	for _, q := range questions {
		if err := json.NewEncoder(&lines).Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "reference.cjs"), library)
	command.Stdin, command.Stderr = &lines, &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.Bytes())
	}
	answers := make([]answer, len(questions))
	read := json.NewDecoder(bytes.NewReader(out))
	for i := range answers {
		if err := read.Decode(&answers[i]); err != nil {
			t.Fatal(err)
		}
	}
	return answers
}

// compare compares our answers with the library's, and returns how many are equal.
func compare(t *testing.T, questions []question) (equal int) {
	t.Helper()
	for i, want := range libraryAnswers(t, questions) {
		q := questions[i]
		x, err := Compile(q.Expression)
		var got any
		if err == nil {
			got, err = x.Search(q.Data)
		}
		text, _ := json.Marshal(got)
		var decoded any
		_ = json.Unmarshal(text, &decoded) // NaN is null for both
		if number, isNumber := got.(float64); isNumber && number != number {
			decoded = nil
		}
		if (err != nil) == (want.Error != nil) && (err != nil || reflect.DeepEqual(decoded, want.Result)) {
			equal++
			continue
		}
		excused := false
		for _, d := range deviations {
			excused = excused || d.occurs(q.Expression, q.Data)
		}
		if !excused {
			data, _ := json.Marshal(q.Data)
			why := "no error"
			if want.Error != nil {
				why = *want.Error
			}
			t.Errorf("%s of %s:\n got %s, error %v\nwant %v, %s", q.Expression, data, text, err, want.Result, why)
		}
	}
	return equal
}

// TestComplianceSuite runs the official tests of JMESPath. Where the library differs from them, the library decides.
func TestComplianceSuite(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", ".peers", "notifybc", "compliance", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no compliance tests: run .ci/notifybc-tools first (%v)", err)
	}
	var questions []question
	same := 0
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var suites []struct {
			Given any
			Cases []struct {
				Expression string
				Result     any
				Error      string
			}
		}
		if err := json.Unmarshal(raw, &suites); err != nil {
			t.Fatal(err)
		}
		for _, s := range suites {
			for _, c := range s.Cases {
				questions = append(questions, question{c.Expression, s.Given})
				x, err := Compile(c.Expression)
				var got any
				if err == nil {
					got, err = x.Search(s.Given)
				}
				if (err != nil) == (c.Error != "") && (err != nil || reflect.DeepEqual(got, c.Result)) {
					same++
				} else {
					t.Logf("the suite differs: %s of %v is %v, not %v (%v, %s)", c.Expression, s.Given, got, c.Result, err, c.Error)
				}
			}
		}
	}
	equal := compare(t, questions)
	t.Logf("%d expressions; %d agree with the suite and %d with the library", len(questions), same, equal)
	if same < len(questions)*95/100 || equal < len(questions)*95/100 {
		t.Error("too few agree")
	}
}

// TestFiltersAgreeWithTheLibrary compares generated filters over generated data.
func TestFiltersAgreeWithTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	questions := make([]question, 20_000)
	for i := range questions {
		g := generator{r}
		questions[i] = question{"[?" + g.expression(3) + "]", []any{g.object(3)}}
	}
	equal := compare(t, questions)
	t.Logf("%d of %d agree", equal, len(questions))
	if equal < len(questions)*90/100 {
		t.Error("too few agree")
	}
}

// A generator draws expressions and data over a few names.
type generator struct{ *rand.Rand }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) value(depth int) any {
	switch g.IntN(11) {
	case 0:
		return nil
	case 1:
		return g.IntN(2) == 0
	case 2, 3:
		return float64(g.IntN(5) - 1)
	case 4, 5, 6, 7:
		return g.one("", "a", "B", "b", "10", "9", "1.5e1", " 7 ", "0x1F", "x y", "é", "𝒳", "￿", "null")
	case 8:
		return 0.5
	case 9:
		if depth > 0 {
			list := make([]any, g.IntN(4))
			for i := range list {
				list[i] = g.value(depth - 1)
			}
			return list
		}
	case 10:
		if depth > 0 {
			return g.object(depth - 1)
		}
	}
	return "a"
}

func (g generator) object(depth int) map[string]any {
	object := map[string]any{}
	for range g.IntN(5) {
		object[g.name()] = g.value(depth)
	}
	return object
}

func (g generator) name() string { return g.one("a", "b", "c", "d", "tags") }

func (g generator) literal() string {
	if g.IntN(3) > 0 {
		text, _ := json.Marshal(g.value(1))
		return "`" + strings.ReplaceAll(string(text), "`", "\\`") + "`"
	}
	return "'" + g.one("a", "b", "10", "", "x y", "é", "null", "1") + "'"
}

func (g generator) expression(depth int) string {
	if depth == 0 {
		return g.one(g.name(), g.name(), g.literal(), "@")
	}
	a, b := g.expression(depth-1), g.expression(g.IntN(depth))
	switch g.IntN(22) {
	case 0, 1:
		return a + " || " + b
	case 2, 3:
		return a + " && " + b
	case 4:
		return "!" + b
	case 5, 6, 7:
		return a + " " + g.one("==", "!=", "<", "<=", ">", ">=") + " " + b
	case 8:
		return g.name() + "." + g.name()
	case 9:
		return g.name() + g.one("[0]", "[-1]", "[*]", "[]", "[1:]", "[::-1]", "[:2]", "[::2]", "[-3:-1]", "[5:0:-2]")
	case 10:
		return g.name() + "[?" + b + "]" + g.one("", "."+g.name(), "[0]", " | [0]")
	case 11:
		return "[" + a + ", " + b + "]" + g.one("", "[0]", " | [1]")
	case 12:
		return "{x: " + a + ", y: " + b + "}" + g.one("", ".x")
	case 13:
		return "(" + g.name() + ")" + g.one("", "."+g.name())
	case 14:
		return g.one("abs", "avg", "ceil", "floor", "length", "sum", "reverse", "sort", "type", "to_number", "to_array", "max", "min", "not_null", "keys", "unknown") + "(" + b + ")"
	case 15, 16:
		return g.one("contains", "starts_with", "ends_with", "not_null", "join", "sort") + "(" + a + ", " + b + ")"
	case 17:
		return g.one("sort_by", "max_by") + "(" + g.name() + ", &" + b + ")"
	case 18:
		return "map(&" + b + ", " + g.name() + ")"
	case 19:
		return g.name() + "[*]." + g.name() + g.one("", "[]", "[0]")
	case 20:
		return a + " | " + b
	default:
		return b
	}
}
