package evaluator

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
)

// TestCaseFoldingIsThatOfUnicode compares the folding of every rune that has another case with that
// of regular expressions, which also use Unicode's simple case folding, and tests the pairs of
// Unicode's table that are not upper and lower case.
func TestCaseFoldingIsThatOfUnicode(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if r >= 0xD800 && r < 0xE000 {
			continue
		}
		if next := unicode.SimpleFold(r); next != r {
			if !regexp.MustCompile("(?i)^" + regexp.QuoteMeta(string(r)) + "$").MatchString(string(next)) {
				t.Fatalf("%U does not fold to %U", r, next)
			}
			if foldRune(r) != foldRune(next) {
				t.Fatalf("%U and %U fold differently", r, next)
			}
		} else if foldRune(r) != r {
			t.Fatalf("%U is folded", r)
		}
	}
	for _, x := range []struct {
		a, b string
		same bool
	}{
		{"K", "\u212a", true}, {"s", "ſ", true}, {"Å", "\u212b", true}, {"µ", "μ", true}, {"ß", "ẞ", true}, {"σ", "ς", true}, {"Σ", "ς", true},
		{"ǅ", "ǆ", true}, {"ǅ", "Ǆ", true}, {"Ω", "\u2126", true}, {"ꭰ", "Ꭰ", true}, {"𐐀", "𐐨", true}, {"ͅ", "ι", true},
		{"İ", "i", false}, {"İ", "I", false}, {"ı", "i", false}, {"ı", "I", false}, {"ß", "ss", false}, {"ŉ", "ʼn", false}, {"é", "e\u0301", false}, {"a", "á", false},
	} {
		if got := fold(x.a) == fold(x.b); got != x.same {
			t.Errorf("%q and %q: %v", x.a, x.b, got)
		}
	}
}

func TestCaseInsensitiveSearchIsThatOfRegularExpressions(t *testing.T) {
	g, topic := newGenerator(*seed), &Topic{}
	characters := []string{"a", "A", "k", "K", "\u212a", "s", "ſ", "ß", "ẞ", "ss", "σ", "ς", "Σ", "İ", "i", "I", "ı", "é", "e\u0301", "😀", " "}
	text := func(n int) string {
		var out strings.Builder
		for range g.IntN(n) {
			out.WriteString(g.one(characters...))
		}
		return out.String()
	}
	found := 0
	for range *cases {
		whole, part := text(12), text(3)
		for name, anchor := range map[string]string{"contains_ci": "", "starts_with_ci": "^"} {
			want := whole != "" && part != "" && regexp.MustCompile("(?i)"+anchor+regexp.QuoteMeta(part)).MatchString(whole)
			got := decideOne(t, topic, name+"(event.a, event.b)", fmt.Sprintf(`{"a":%s,"b":%s}`, jsonText(whole), jsonText(part)))
			if got.Result != resultOf(want) {
				t.Fatalf("%s(%q, %q) is %s", name, whole, part, got.Result)
			}
			if want {
				found++
			}
		}
	}
	t.Logf("%d of %d found", found, 2**cases)
}

func resultOf(b bool) Result {
	if b {
		return True
	}
	return False
}

// byVectors returns the length of the great circle by another formula: the angle between two
// vectors.
func byVectors(lat1, lon1, lat2, lon2 float64) float64 {
	vector := func(lat, lon float64) [3]float64 {
		lat, lon = lat*math.Pi/180, lon*math.Pi/180
		return [3]float64{math.Cos(lat) * math.Cos(lon), math.Cos(lat) * math.Sin(lon), math.Sin(lat)}
	}
	a, b := vector(lat1, lon1), vector(lat2, lon2)
	cross := [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
	dot := a[0]*b[0] + a[1]*b[1] + a[2]*b[2]
	return earthRadius * math.Atan2(math.Sqrt(cross[0]*cross[0]+cross[1]*cross[1]+cross[2]*cross[2]), dot)
}

func TestDistancesAreThoseOfAnotherFormula(t *testing.T) {
	g := newGenerator(*seed)
	latitudes, longitudes := []float64{90, -90, 0, 89.999999, 48.43}, []float64{180, -180, 0, 179.999999, -123.37}
	place := func() (lat, lon float64) {
		if g.chance(3) {
			return latitudes[g.IntN(len(latitudes))], longitudes[g.IntN(len(longitudes))]
		}
		return g.Float64()*180 - 90, g.Float64()*360 - 180
	}
	for range 20_000 {
		lat1, lon1 := place()
		lat2, lon2 := place()
		if g.chance(4) {
			lat2, lon2 = math.Max(-90, lat1-g.Float64()/1000), lon1
		}
		a, b := distance(lat1, lon1, lat2, lon2), byVectors(lat1, lon1, lat2, lon2)
		// Near the antipode, the haversine formula loses up to half of its digits.
		limit := 1e-6
		if b > 20_000 {
			limit = 1e-3
		}
		if math.Abs(a-b) > limit {
			t.Fatalf("%v,%v to %v,%v: %v, by vectors %v", lat1, lon1, lat2, lon2, a, b)
		}
	}
}

func TestPlacesThatDoNotExistAreErrors(t *testing.T) {
	topic := &Topic{}
	for text, want := range map[string]Result{
		"geo.within(90, 180, 90, -180, 0)":               True,
		"geo.within(0, 0, 0, 180, 20015.2)":              True,
		"geo.within(0, 0, 0, 180, 20015)":                False,
		"geo.within(90.0000001, 0, 0, 0, 1)":             Error,
		"geo.within(0, -180.1, 0, 0, 1)":                 Error,
		"geo.within(0, 0, -91, 0, 1)":                    Error,
		"geo.within(0, 0, 0, 0, -0.0)":                   True,
		"geo.within(0, 0, 0, 0, 1.0 / 0.0)":              Error,
		"geo.within(0, 0, 0, 0, 0.0 / 0.0)":              Error,
		"geo.within(0.0 / 0.0, 0, 0, 0, 1)":              Error,
		"geo.within(0u, 0, 0, 0, 1)":                     True,
		"geo.within('0', 0, 0, 0, 1)":                    Error,
		"geo.within(event.gone, 0, 0, 0, 1)":             Error,
		"geo.within(48.43, -123.37, 49.28, -123.12, 97)": True,
	} {
		if got := decideOne(t, topic, text, "{}"); got.Result != want {
			t.Errorf("%s is %s (%s)", text, got.Result, got.Reason)
		}
	}
}

func TestCrossingsAreDecidedByTheLastEventAndThisOne(t *testing.T) {
	topic := &Topic{}
	for _, x := range []struct {
		before, now, condition string
		want                   Result
	}{
		{`{"p":119}`, `{"p":120}`, "crosses_above(event.p, 120)", True},
		{`{"p":119}`, `{"p":121}`, "crosses_above(event.p, 120)", True},
		{`{"p":120}`, `{"p":121}`, "crosses_above(event.p, 120)", False},
		{`{"p":121}`, `{"p":119}`, "crosses_above(event.p, 120)", False},
		{`{"p":121}`, `{"p":120}`, "crosses_below(event.p, 120)", True},
		{`{"p":120}`, `{"p":119}`, "crosses_below(event.p, 120)", False},
		{`{"p":121}`, `{"p":119}`, "crosses(event.p, 120)", True},
		{`{"p":119}`, `{"p":120}`, "crosses(event.p, 120)", True},
		{`{"p":120}`, `{"p":120}`, "crosses(event.p, 120)", False},
		{``, `{"p":120}`, "crosses(event.p, 120)", False},
		{`null`, `{"p":120}`, "crosses(event.p, 120)", False},
		{`{}`, `{"p":120}`, "crosses(event.p, 120)", False},
		{`{"p":"1"}`, `{"p":120}`, "crosses(event.p, 120)", False},
		{`{"p":1e999}`, `{"p":1e999}`, "crosses(event.p - event.p, 120)", Error},
		{`{"p":1e999}`, `{"p":130.0}`, "crosses(event.p - event.p + 130.0, 120)", False},
		{`{"p":1e999}`, `{"p":1}`, "crosses_below(event.p, 120)", True},
		{``, `{}`, "crosses(event.p, 120)", Error},
		{``, `{"p":"1"}`, "crosses(event.p, 120)", Error},
		{``, `{"p":null}`, "crosses(event.p, 120)", Error},
		{``, `{"p":1}`, "crosses(event.p, event.level)", Error},
		{``, `{"p":1}`, "crosses(event.p, 'x')", Error},
		{`{"p":1}`, `{"p":1}`, "crosses(event.p, 0.0 / 0.0)", Error},
		{`{"p":1,"level":9}`, `{"p":5,"level":3}`, "crosses_above(event.p, event.level)", True},
		{`{"p":1,"q":1}`, `{"p":5,"q":2}`, "crosses_above(event.p * event.q, 10)", True},
		{`{"p":1}`, `{"p":5,"q":2}`, "crosses_above(event.p * event.q, 10)", False},
		{`{"p":9223372036854775807}`, `{"p":5}`, "crosses(event.p + 1, 10)", False},
		{`{"p":5}`, `{"p":9223372036854775807}`, "crosses(event.p + 1, 10)", Error},
		{`{"p":9007199254740992}`, `{"p":9007199254740993}`, "crosses_above(event.p, 9007199254740993)", True},
		{`{"p":9007199254740992}`, `{"p":9007199254740993}`, "crosses_above(event.p, 9007199254740993.0)", False},
		{`{"p":1}`, `{"p":3}`, "crosses(event.p, 2u)", True},
		{`{"p":1}`, `{"p":3}`, "!crosses(event.p, 2) || event.gone", Error},
		{`[1]`, `[3]`, "crosses(event[0], 2)", True},
	} {
		c, err := topic.Condition(x.condition, nil)
		if err != nil {
			t.Fatal(err)
		}
		in, err := topic.Event(Event{Data: []byte(x.now), Was: []byte(x.before)})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Evaluate(in, nil); got.Result != x.want {
			t.Errorf("%s, %s after %s, is %s (%s)", x.condition, x.now, x.before, got.Result, got.Reason)
		}
		if got := batchResult(t, 0, first(NewBatch(topic, []*Input{in}), c)...); got != x.want {
			t.Errorf("%s, %s after %s, is %s in a batch", x.condition, x.now, x.before, got)
		}
	}
}

func TestPatternsWithManyPartsAreErrors(t *testing.T) {
	topic := &Topic{}
	for pattern, want := range map[string]Result{
		"a": True, "(a?){100}": True, "(a?){200}": True, "(a?){1000}": Error, "(a?){249}": True, "(a?){250}": True, "(a?){251}": Error, "(a?){334}": Error,
		"(": Error, "a{2,500}": False, "(a{2,5}){2,9}": False, "(a{2,30}){2,30}": Error, "a(?=b)": Error, "": True, strings.Repeat("(a)", 600): Error,
	} {
		for _, text := range []string{fmt.Sprintf("event.a.matches('%s')", pattern), "event.a.matches(event.p)", "matches(event.a, event.p)"} {
			if got := decideOne(t, topic, text, fmt.Sprintf(`{"a":"a","p":%q}`, pattern)); got.Result != want {
				t.Errorf("%s of %s is %s (%s)", text, pattern, got.Result, got.Reason)
			}
		}
	}
}

// The test compares arithmetic that overflows.
func TestTimesAreThoseOfCELNearTheirLimits(t *testing.T) {
	env, topic, g := celEnv(t), &Topic{}, newGenerator(*seed)
	seconds := []int64{minSeconds, maxSeconds, 0, -9223372036, 9223372036, -9223372037, 9223372037, 1774632600}
	at := func() string {
		s := seconds[g.IntN(len(seconds))] + int64(g.IntN(5)-2)
		s = min(max(s, minSeconds), maxSeconds)
		return "timestamp('" + time.Unix(s, []int64{0, 1, 145224191, 145224192, 854775807, 854775808, 999999999}[g.IntN(7)]).UTC().Format(time.RFC3339Nano) + "')"
	}
	span := func() string {
		return "duration('" + g.one("0s", "1ns", "-1ns", "1s", "-1s", "2562047h47m16.854775807s", "-2562047h47m16.854775808s", "2562047h47m16s", "-2562047h47m16s",
			"9223372036.000000001s", "-9223372036.999999999s", "1.5h", "999999h59m59.999999999s") + "')"
	}
	count := 0
	for range *cases {
		text := g.one(
			fmt.Sprintf("%s - %s > %s", at(), at(), span()), fmt.Sprintf("%s + %s > %s", at(), span(), at()), fmt.Sprintf("%s - %s == %s", at(), span(), at()),
			fmt.Sprintf("string(%s - %s) == 'x'", at(), at()), fmt.Sprintf("%s + %s < %s", span(), span(), span()), fmt.Sprintf("%s - %s < %s", span(), span(), span()),
			fmt.Sprintf("%s.%s(%s) == %d", at(), g.one("getFullYear", "getDayOfYear", "getHours", "getMinutes", "getMilliseconds"), g.one("", quoted(g.one(zones...))), g.IntN(30)),
			fmt.Sprintf("%s.%s() == %d", span(), g.one("getHours", "getMinutes", "getSeconds", "getMilliseconds"), g.IntN(3)),
			fmt.Sprintf("timestamp(%d) == %s", seconds[g.IntN(len(seconds))]+int64(g.IntN(3)-1), at()), fmt.Sprintf("int(%s) > 5", at()))
		ast, issues := env.Compile(text)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", text, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		want, _, reason := celResult(program, map[string]any{})
		if got := decideOne(t, topic, text, "{}"); got.Result != want {
			t.Fatalf("%s is %s (%s), by cel-go %s (%s)", text, got.Result, got.Reason, want, reason)
		}
		count++
	}
	t.Logf("%d compared", count)
}

// The test compares which texts are accepted as a time, a duration, a number and a boolean.
func TestTimesAreReadAsCELReadsThem(t *testing.T) {
	env, topic, g := celEnv(t), &Topic{}, newGenerator(*seed)
	forms := map[string][]string{
		"timestamp": times, "duration": durations, "int": {"42", "-7", "9223372036854775807"}, "uint": {"42", "18446744073709551615"},
		"double": {"1.5", "-1e5", "inf", "nan", "0x1p3"}, "bool": {"true", "False", "T"},
	}
	digits := []string{"0", "1", "9", "-", "+", ":", ".", "T", "Z", "t", "z", "e", "_", " ", "h", "m", "s", "ns", "µs", "24", "60", "99", "x"}
	taken := 0
	for name, texts := range forms {
		ast, issues := env.Compile(name + "(event.a) == " + name + "(event.a)")
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		for range *cases / 3 {
			text := g.one(texts...)
			for g.chance(2) {
				at := g.IntN(len(text) + 1)
				text = strings.ToValidUTF8(text[:at]+g.one(digits...)+text[min(len(text), at+g.IntN(3)):], "")
			}
			want, _, reason := celResult(program, map[string]any{"event": map[string]any{"a": text}})
			got := decideOne(t, topic, name+"(event.a) == "+name+"(event.a)", `{"a":`+jsonText(text)+`}`)
			if got.Result != want {
				t.Fatalf("%s(%q) is %s (%s), by cel-go %s (%s)", name, text, got.Result, got.Reason, want, reason)
			}
			if want == True {
				taken++
			}
		}
	}
	t.Logf("%d texts taken", taken)
}
