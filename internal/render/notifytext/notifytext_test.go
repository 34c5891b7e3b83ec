package notifytext

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files")

func values(t *testing.T, object string) Values {
	t.Helper()
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(object))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return Map(m)
}

const people = `{"First_Name":"Ada","list":["a"," b ",null,"","c"],"one":["x"],"none":[],"n":12.50,"yes":"Yes","no":"no","on":true,"off":false,"null":null,"empty":"","md":"*bold* [x](y)"}`

func TestPlaceholdersAreListedOnceInOrder(t *testing.T) {
	subject, body := Parse("((a)) ((b??text))"), Parse("(( A )) ((b)) (())((c)) ((__)) ((d??x??y))")
	want := []Placeholder{{"a", false}, {"b", true}, {"c", false}, {"d", true}}
	if got := Placeholders(subject, body); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAllMissingNamesAreReported(t *testing.T) {
	text := Parse("((first name)) ((null)) ((empty)) ((who)) ((flag??x)) ((WHO))")
	if got, want := Missing(values(t, people), text), []string{"null", "who", "flag"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestContentIsTheSourceWithValues(t *testing.T) {
	tests := []struct{ source, content string }{
		{"  ((first-name)) and (( FIRST NAME ))\n", "Ada and Ada"},
		{"# List((list))\nend", "# List\n\n* a\n* b\n* c\nend"},
		{"[((none))] ((n)) ((on)) ((off)) ((null))", "[] 12.50 True False"},
		{"((yes??shown ??, \"so\"))((no??hidden))((on?? and\r\nthis))", "shown ??, \"so\" and\nthis"},
		{"((md)) <b> & it's", "*bold* [x](y) <b> & it's"},
		{"(((first name))) ((a(b)))", "(Ada) ((a(b)))"},
	}
	for _, tt := range tests {
		if got := Parse(tt.source).Content(values(t, people)); got != tt.content {
			t.Errorf("%q: %q, want %q", tt.source, got, tt.content)
		}
	}
}

func TestSubjectHasTypographyAndOneLine(t *testing.T) {
	tests := []struct{ source, subject string }{
		{` "((first name))'s  bike" - it's` + "\n((list)) ", "“Ada’s bike” – it’s a, b and c"},
		{"((one)) , ok .", "x, ok."},
		{"the '90s 'quoted' o'neil@example.com", "the ’90s ‘quoted’ o'neil@example.com"},
	}
	for _, tt := range tests {
		if got := Parse(tt.source).Subject(values(t, people)); got != tt.subject {
			t.Errorf("%q: %q, want %q", tt.source, got, tt.subject)
		}
	}
}

func TestTextMessagesUseTheGSMAlphabet(t *testing.T) {
	tests := []struct {
		source, text string
		fragments    int
	}{
		{"Hi ((first name)): ((list))", "Hi Ada: a, b and c", 1},
		{"“quotes” – it’s… ", `"quotes" - it's...`, 1},
		{"ç ć š ñ é ø ł", "c c s ñ é ø l", 1},
		{"日本 😀", "?? ?", 1},
		{"a\u200bb\u00a0c\td", "ab c d", 1},
		{"ŵ", "ŵ", 1},
		{strings.Repeat("a", 160), strings.Repeat("a", 160), 1},
		{strings.Repeat("a", 161), strings.Repeat("a", 161), 2},
		{strings.Repeat("a", 307), strings.Repeat("a", 307), 3},
		{strings.Repeat("€", 80), strings.Repeat("€", 80), 1},
		{strings.Repeat("[", 81), strings.Repeat("[", 81), 2},
		{strings.Repeat("ŷ", 70), strings.Repeat("ŷ", 70), 1},
		{strings.Repeat("ŷ", 71), strings.Repeat("ŷ", 71), 2},
		{strings.Repeat("ŷ", 135), strings.Repeat("ŷ", 135), 3},
	}
	for _, tt := range tests {
		got := Parse(tt.source).SMS(values(t, people))
		if n := Fragments(got); got != tt.text || n != tt.fragments {
			t.Errorf("%q: %q in %d, want %q in %d", tt.source, got, n, tt.text, tt.fragments)
		}
	}
}

func TestSanitisedValuesHaveNoMarkup(t *testing.T) {
	tests := []struct{ value, want string }{
		{"Ada Lovelace, 12.50", "Ada Lovelace, 12.50"},
		{"# Title", `\# Title`},
		{"[click](https://evil.example/a?b)", `\[click\]\(`},
		{"see http://x.example now", "see  now"},
		{"www.evil.example", ""},
		{"evil.example.com", "evil. example. com"},
		{"1. one\n* two\n• three", "1\\. one\n\\* two\n\\• three"},
		{`a\*b ^x`, `a\\\*b \^x`},
	}
	for _, tt := range tests {
		if got := Sanitise(tt.value); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.value, got, tt.want)
		}
	}
}

// A sanitised value is shown as it is, whatever Markdown it contains.
func TestSanitisedValuesAreShownAsText(t *testing.T) {
	for _, value := range []string{"# x", "* x", "• x", "1. x", "---", "^ x", "[a](b)", "![a](b)", "a | b", "<b>", `\*`, "[^1]", "+ x", "1) x", "> x"} {
		got := NewBody(Parse("((x))")).Plain(values(t, `{"x":`+quote(Sanitise(value))+`}`))
		if got != value+"\n" {
			t.Errorf("%q: %q", value, got)
		}
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestMarkdownIsWrittenAsGoldenFilesShow(t *testing.T) {
	files, err := filepath.Glob("testdata/*.notify")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body := NewBody(Parse(string(source)))
		for ending, got := range map[string]string{".html": body.HTML(values(t, people)), ".txt": body.Plain(values(t, people))} {
			golden := strings.TrimSuffix(file, ".notify") + ending
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s:\n%s\nwant:\n%s", golden, got, want)
			}
		}
	}
}

func TestConstructsOfMarkdown(t *testing.T) {
	tests := []struct{ source, html, plain string }{
		{"*a* **b** _c_ `d` ~~e~~", "*a* **b** _c_ `d` ~~e~~", "*a* **b** _c_ `d` ~~e~~\n"},
		{"[a](javascript:alert(1)//://)", ">a<", "a: "},
		{"[a](javascript://%0aalert(1))", ">a</p>", "a\n"},
		{"[a](example.com)", `href="http://example.com">a</a>`, "a: http://example.com\n"},
		{`[a](https://e.com "T")`, `href="https://e.com" title="T">a</a>`, "a (T): https://e.com\n"},
		{"see https://e.com/a?b=1&c=2, or", `href="https://e.com/a?b=1&amp;c=2">https://e.com/a?b=1&amp;c=2</a>, or`, "see https://e.com/a?b=1&c=2, or\n"},
		{"ada@example.com www.example.com", ">ada@example.com www.example.com</p>", "ada@example.com www.example.com\n"},
		{"a\nb", "a<br>\nb", "a\nb\n"},
		{"<script>x</script>", "&lt;script&gt;x&lt;/script&gt;", "<script>x</script>\n"},
		{"GOV.UK and www.gov.uk/x (GOV.UK)", "GOV.\u200bUK and www.gov.uk/x (GOV.\u200bUK)", "GOV.\u200bUK and www.gov.uk/x (GOV.\u200bUK)\n"},
		{"it's \"so\" - o'b@x.org , ok", "it’s “so” – o'b@x.org, ok", "it’s “so” – o'b@x.org, ok\n"},
		{"    indented", ">indented</p>", "indented\n"},
		{"a ![pic](x.png) b", "a  b", "a  b\n"},
		{"[![pic](x.png)](https://e.com)", `href="https://e.com"></a>`, "https://e.com\n"},
		{"+ a", "+ a</p>", "+ a\n"},
		{"", "", ""},
	}
	for _, tt := range tests {
		body := NewBody(Parse(tt.source))
		if got := body.HTML(Map(nil)); !strings.Contains(got, tt.html) {
			t.Errorf("%q: %s, want %s in it", tt.source, got, tt.html)
		}
		if got := body.Plain(Map(nil)); !strings.HasPrefix(got, tt.plain) {
			t.Errorf("%q: %q, want %q", tt.source, got, tt.plain)
		}
	}
}

func TestPreheaderIsTheBeginningOfTheText(t *testing.T) {
	body := NewBody(Parse("# Hello ((first name))\n\n---\n\nmore " + strings.Repeat("x", 300)))
	got := body.Preheader(values(t, people))
	if !strings.HasPrefix(got, "Hello Ada more xxx") || len(got) != preheaderRunes {
		t.Errorf("%q", got)
	}
}

// Inserting values into a parsed text gives what parsing the text with the values gives.
func TestInsertedValuesEqualParsedOnes(t *testing.T) {
	inserted := 0
	parts := rapid.SampledFrom([]string{"((a))", "((b))", "((c??shown ))", "((c?? # x))", " ", "\n", "\n\n", "# ", "* ", "1. ", "- ", "^", "---", ". ", ", ", ".", ",", ":", "\"", "'", "(", ")", "[", "](", "](https://e.com)", "word", "GOV.UK", "gov.", "@", "https://e.com/", "|", "\n|--|--|\n", " - ", "•", "\\", "!", "[^1]", "é", "&amp;", "<", "90s"})
	value := rapid.SampledFrom([]string{"Ada", "Ada Lovelace", "3", "12.50", "3 March", "a-b", "10:30", "1/2", "it's", "*", "# x", "a. b", "", " a", "x.", "gov.uk", "gov", "uk", "http", "é", "-", "90s", "1.", "https://x.org", "a\nb", "a|b", "yes"})
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(parts, 1, 12).Draw(t, "parts"), "")
		of := Map(map[string]any{"a": value.Draw(t, "a"), "b": value.Draw(t, "b"), "c": rapid.SampledFrom([]string{"yes", "no"}).Draw(t, "c")})
		body := NewBody(Parse(source))
		if body.formFor(of) != nil {
			inserted++
		}
		doc, raw := parse(body.text.insert(of, true))
		if got, want := body.HTML(of), writeHTML(doc, raw); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", source, got, want)
		}
		if got, want := body.Plain(of), endLine(writePlain(doc, raw)); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	})
	if inserted == 0 {
		t.Error("no values were inserted")
	}
}

// Texts that are made to be expensive are written in a time that follows their length.
func TestExpensiveTextsAreBounded(t *testing.T) {
	const size = 64 << 10
	for _, unit := range []string{"[", "- ", "* a\n", "^", "1. ", "](", "[a](b", "\n", "((a", "![", "'", "a@", "> ", "[^1]", "[^1]: x\n", "|-", "a|b\n-|-\n", "  - a\n", "\t", " - ", "https://", "<", "\\", "&#"} {
		start := time.Now()
		body := NewBody(Parse(strings.Repeat(unit, size/len(unit))))
		body.HTML(Map(nil))
		body.Plain(Map(nil))
		took := time.Since(start)
		if took > 5*time.Second {
			t.Errorf("%q takes %s", unit, took)
		}
	}
	deep := ""
	for i := range 200 {
		deep += strings.Repeat("  ", i) + "- a\n"
	}
	start := time.Now()
	NewBody(Parse(deep)).HTML(Map(nil))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("nested lists take %s", took)
	}
}

func FuzzHTMLHasOnlyItsOwnTags(f *testing.F) {
	for _, seed := range []string{"<script>", "[a](javascript:x)", "# <b>", "[\"><b>](x)", "* <i>\n1. ((x))", "^<u>", "&lt;b&gt;", "[a](x \"<b>\")", "https://e.com/<b>"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, source, value string) {
		of := Map(map[string]any{"x": value})
		body := NewBody(Parse(source))
		html := body.HTML(of)
		for rest := html; ; {
			i := strings.IndexByte(rest, '<')
			if i < 0 {
				break
			}
			rest = strings.TrimPrefix(rest[i+1:], "/")
			name := rest[:strings.IndexAny(rest+">", " >")]
			switch name {
			case "p", "h2", "h3", "hr", "div", "ul", "ol", "li", "a", "br", "table", "tr", "td":
			default:
				t.Fatalf("%q with %q has the tag %q: %s", source, value, name, html)
			}
		}
		lower := strings.ToLower(html)
		if strings.Contains(lower, `href="javascript:`) || strings.Contains(lower, `href="data:`) {
			t.Fatalf("%q: %s", source, html)
		}
		body.Plain(of)
		Fragments(body.Text().SMS(of))
		Sanitise(value)
	})
}
