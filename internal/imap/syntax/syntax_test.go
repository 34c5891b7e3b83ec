package syntax

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func day(text string) time.Time {
	t, err := time.Parse("2006-01-02", text)
	if err != nil {
		panic(err)
	}
	return t
}

func number(n uint64) *uint64 { return &n }

func TestCommandsAreRead(t *testing.T) {
	at := time.Date(1994, 2, 1, 12, 34, 56, 0, time.FixedZone("", 3600))
	for _, c := range []struct {
		raw  string
		name string
		args any
	}{
		{"a NOOP", "NOOP", nil},
		{"a1.] noop ", "NOOP", nil},
		{"a LOGIN user \"pass \\\"word\\\\\"", "LOGIN", &Login{"user", `pass "word\`}},
		{"a LOGIN {4}\r\nus\"r {0+}\r\n", "LOGIN", &Login{`us"r`, ""}},
		{"a AUTHENTICATE plain AGEAYg==", "AUTHENTICATE", &Authenticate{"PLAIN", []byte("\x00a\x00b")}},
		{"a AUTHENTICATE PLAIN =", "AUTHENTICATE", &Authenticate{"PLAIN", []byte{}}},
		{"a AUTHENTICATE SCRAM-SHA-256", "AUTHENTICATE", &Authenticate{"SCRAM-SHA-256", nil}},
		{"a ENABLE condstore UTF8=ACCEPT", "ENABLE", &Enable{[]string{"CONDSTORE", "UTF8=ACCEPT"}}},
		{"a ID NIL", "ID", &ID{}},
		{`a ID ("name" "x" "version" NIL)`, "ID", &ID{[][2]string{{"name", "x"}, {"version", ""}}}},
		{`a ID ( "name" "x" )`, "ID", &ID{[][2]string{{"name", "x"}}}},
		{"a SELECT inbox", "SELECT", &Select{Mailbox: "INBOX"}},
		{"a EXAMINE \"a b\" (CONDSTORE)", "EXAMINE", &Select{Mailbox: "a b", Condstore: true}},
		{"a SELECT x (QRESYNC (67890007 20050715194045000 41,43:211,214:541))", "SELECT",
			&Select{Mailbox: "x", Qresync: &Qresync{UIDValidity: 67890007, ModSeq: 20050715194045000, Known: NumSet{{41, 41}, {43, 211}, {214, 541}}}}},
		{"a SELECT x (QRESYNC (67890007 90060115194045000 1:29997 (5000,7500,9000,9990:9999 15000,22500,27000,29970,29973,29976,29979,29982,29985,29988,29991,29994,29997)))", "SELECT",
			&Select{Mailbox: "x", Qresync: &Qresync{UIDValidity: 67890007, ModSeq: 90060115194045000, Known: NumSet{{1, 29997}}, MatchSeqs: NumSet{{5000, 5000}, {7500, 7500}, {9000, 9000}, {9990, 9999}},
				MatchUIDs: NumSet{{15000, 15000}, {22500, 22500}, {27000, 27000}, {29970, 29970}, {29973, 29973}, {29976, 29976}, {29979, 29979}, {29982, 29982}, {29985, 29985}, {29988, 29988}, {29991, 29991}, {29994, 29994}, {29997, 29997}}}}},
		{"a SELECT x (QRESYNC (1 2 (1 3)))", "SELECT", &Select{Mailbox: "x", Qresync: &Qresync{UIDValidity: 1, ModSeq: 2, MatchSeqs: NumSet{{1, 1}}, MatchUIDs: NumSet{{3, 3}}}}},
		{`a CREATE x (USE (\Sent \Drafts))`, "CREATE", &Create{"x", []string{`\Sent`, `\Drafts`}}},
		{"a RENAME a b", "RENAME", &Rename{"a", "b"}},
		{`a LIST "" %`, "LIST", &List{Patterns: []string{"%"}}},
		{`a LIST (SUBSCRIBED RECURSIVEMATCH) "" ("a*" b%) RETURN (CHILDREN STATUS (MESSAGES UNSEEN))`, "LIST", &List{Extended: true, Subscribed: true, RecursiveMatch: true,
			ReturnSubscribed: true, ReturnChildren: true, ReturnStatus: []string{"MESSAGES", "UNSEEN"}, Patterns: []string{"a*", "b%"}}},
		{`a LSUB "#x" *`, "LSUB", &List{Reference: "#x", Patterns: []string{"*"}}},
		{"a STATUS x (messages SIZE)", "STATUS", &Status{"x", []string{"MESSAGES", "SIZE"}}},
		{"a APPEND x (\\Seen k) \" 1-Feb-1994 12:34:56 +0100\" {3}\r\nabc", "APPEND", &Append{"x", []AppendMessage{{Flags: []string{`\Seen`, "k"}, Date: at, Data: []byte("abc")}}}},
		{"a APPEND x ~{3+}\r\n\x00bc () {1}\r\nd", "APPEND", &Append{"x", []AppendMessage{{Data: []byte("\x00bc"), Binary: true}, {Flags: []string{}, Data: []byte("d")}}}},
		{"a APPEND x UTF8 (~{2}\r\nab)", "APPEND", &Append{"x", []AppendMessage{{Data: []byte("ab"), Binary: true}}}},
		{"a STORE 1:* (UNCHANGEDSINCE 12) +FLAGS.SILENT (\\Deleted)", "STORE", &Store{NumSet{{1, Star}}, '+', true, []string{`\Deleted`}, number(12)}},
		{"a COPY 4294967295:* x", "COPY", &Copy{NumSet{{Star, 4294967295}}, "x"}},
		{"a STORE $ FLAGS \\Seen k", "STORE", &Store{Set: Saved(), Flags: []string{`\Seen`, "k"}}},
		{"a FETCH 1 FAST", "FETCH", &Fetch{Set: NumSet{{1, 1}}, Items: []FetchItem{{Kind: ItemFlags}, {Kind: ItemInternalDate}, {Kind: ItemRFC822Size}}}},
		{"a FETCH 2,4 (UID BODY.PEEK[1.2.HEADER.FIELDS (From \"to\")]<0.2048> body BODY[]) (CHANGEDSINCE 5 VANISHED)", "FETCH",
			&Fetch{NumSet{{2, 2}, {4, 4}}, []FetchItem{{Kind: ItemUID}, {Kind: ItemSection, Peek: true, Section: Section{[]int{1, 2}, "HEADER.FIELDS", []string{"From", "to"}}, Partial: &Partial{0, 2048}},
				{Kind: ItemBody}, {Kind: ItemSection}}, number(5), true}},
		{"a FETCH 1 BINARY.SIZE[1]", "FETCH", &Fetch{Set: NumSet{{1, 1}}, Items: []FetchItem{{Kind: ItemBinarySize, Peek: true, Section: Section{Part: []int{1}}}}}},
		{"a SEARCH RETURN (MIN COUNT) CHARSET UTF-8 UNSEEN 2:4 NOT FROM \"x y\"", "SEARCH", &Search{true, []string{"MIN", "COUNT"}, "UTF-8", &Key{Kind: KeyAnd, Keys: []*Key{
			{Kind: KeyFlag, Text: `\Seen`, Not: true}, {Kind: KeySeq, Set: NumSet{{2, 4}}}, {Kind: KeyNot, Keys: []*Key{{Kind: KeyHeader, Field: "FROM", Text: "x y"}}}}}}},
		{"a SEARCH RETURN () OR (SENTSINCE 1-Feb-1994 LARGER 3) MODSEQ \"/flags/\\\\draft\" all 620162338", "SEARCH", &Search{Return: true, Key: &Key{Kind: KeyAnd, Keys: []*Key{
			{Kind: KeyOr, Keys: []*Key{{Kind: KeyAnd, Keys: []*Key{{Kind: KeySent, Text: "SINCE", Date: day("1994-02-01")}, {Kind: KeyLarger, Number: 3}}}, {Kind: KeyModSeq, Number: 620162338}}}}}}},
	} {
		got, err := Parse([]byte(c.raw))
		if err != nil {
			t.Errorf("%q: %v", c.raw, err)
			continue
		}
		if a, ok := got.Args.(*Append); ok && len(a.Messages) > 0 && a.Messages[0].Date.Equal(at) {
			a.Messages[0].Date = at
		}
		if got.Name != c.name || got.UID || !reflect.DeepEqual(got.Args, c.args) {
			t.Errorf("%q is read as %s %+v, want %s %+v", c.raw, got.Name, got.Args, c.name, c.args)
		}
	}
}

func TestUIDCommandsAreRead(t *testing.T) {
	got, err := Parse([]byte("a uid expunge 3:5,9"))
	if err != nil || !got.UID || got.FullName() != "UID EXPUNGE" || !reflect.DeepEqual(got.Args, &Set{NumSet{{3, 5}, {9, 9}}}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWrongCommandsAreRefusedWithTheirTag(t *testing.T) {
	for _, raw := range []string{
		"a", "a ", "a FOO", "a UID NOOP", "a NOOP x", "a LOGIN x", "a LOGIN x \"y", "a LOGIN x {5}\r\nab", "a LOGIN x {3}\r\na\x00b", "a FETCH 0 FLAGS", "a FETCH 1 (FLAGS", "a FETCH 1 ()", "a FETCH x FLAGS",
		"a FETCH 4294967296 FLAGS", "a FETCH 1 BODY[HEADER.FIELDS ()]", "a FETCH 1 BODY[MIME]", "a FETCH 1 BODY[1.]x", "a FETCH 1 BINARY[TEXT]", "a STORE 1 FLAG x", "a STORE 1 FLAGS", "a SEARCH", "a SEARCH OR 1", "a SEARCH FROM",
		"a SEARCH BEFORE 31-Foo-2000", "a SEARCH ()", "a SELECT", "a SELECT x (FOO)", "a APPEND x", "a APPEND x abc", "a APPEND x \"32-Feb-2000 00:00:00 +0000\" {0}\r\n", "a STATUS x ()", "a STATUS x (FOO)", "a LIST", `a LIST (RECURSIVEMATCH) "" *`,
		"a ENABLE", "a SEARCH " + strings.Repeat("NOT ", 60) + "ALL", "a FETCH 1," + strings.Repeat("1,", maxElements) + "1 FLAGS", "a SEARCH RETURN (FOO) ALL", "a ID (\"a\")", "a SELECT x (QRESYNC (0 1))",
	} {
		_, err := Parse([]byte(raw))
		var bad *Error
		if !errors.As(err, &bad) || bad.Tag != "a" || bad.Text == "" {
			t.Errorf("%.60q: error %v", raw, err)
		}
	}
	for _, raw := range []string{"", " NOOP", "+ NOOP", "a+b NOOP", "(a NOOP", "a\x00 NOOP"} {
		_, err := Parse([]byte(raw))
		var bad *Error
		if !errors.As(err, &bad) || bad.Tag != "" {
			t.Errorf("%q: error %v", raw, err)
		}
	}
}

func TestLiteralsAreFoundAtTheEndOfALine(t *testing.T) {
	for line, want := range map[string]Literal{
		"a LOGIN {5}":       {Size: 5, Sync: true},
		"a LOGIN {5+}":      {Size: 5},
		"a APPEND x ~{0}":   {Binary: true, Sync: true},
		"a APPEND x ~{17+}": {Size: 17, Binary: true},
	} {
		if got, ok := LiteralAt([]byte(line)); !ok || got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "{}", "{+}", "a {x}", "a {5", "a {-5}", "a {5} ", "a {99999999999999999999}", "{++}"} {
		if got, ok := LiteralAt([]byte(line)); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

// The examples are those of RFC 3501, section 5.1.3, and names with surrogate pairs.
func TestMailboxNamesInModifiedUTF7(t *testing.T) {
	for encoded, name := range map[string]string{
		"~peter/mail/&U,BTFw-/&ZeVnLIqe-": "~peter/mail/台北/日本語", "A&-B": "A&B", "&2D3eAA-": "😀", "&AOQ-&-": "ä&", "plain": "plain", "&Jjo-!": "☺!",
	} {
		if got, err := DecodeMailbox(encoded, false); err != nil || got != name {
			t.Errorf("%q is decoded as %q, %v", encoded, got, err)
		}
		if got := EncodeMailbox(name, false); got != encoded {
			t.Errorf("%q is encoded as %q, want %q", name, got, encoded)
		}
	}
	for _, bad := range []string{"&", "&AOQ", "&AOQ=-", "&AGE-", "\xff", "\x01", "&2D0-", "&A-", "&Jjo", "&U,BTFw-&ZeVnLIqe-", "&AOR-"} {
		if got, err := DecodeMailbox(bad, false); err == nil {
			t.Errorf("%q is decoded as %q", bad, got)
		}
	}
	if got, err := DecodeMailbox("ä&-&AOQ-", false); err != nil || got != "ä&ä" {
		t.Errorf("a name with characters that are not encoded: %q, %v", got, err)
	}
	if got, err := DecodeMailbox("ä&", true); err != nil || got != "ä&" || EncodeMailbox(got, true) != "ä&" {
		t.Errorf("with UTF-8: %q, %v", got, err)
	}
	if _, err := DecodeMailbox("\xff", true); err == nil {
		t.Error("a name that is not UTF-8 is accepted")
	}
}

func TestSetsAreResolved(t *testing.T) {
	for _, c := range []struct {
		set     NumSet
		largest uint32
		want    string
	}{
		{NumSet{{1, Star}}, 5, "1:5"},
		{NumSet{{7, Star}}, 5, "5:7"},
		{NumSet{{Star, Star}}, 5, "5"},
		{NumSet{{Star, Star}}, 0, ""},
		{NumSet{{5, 3}, {1, 2}, {9, 9}, {4, 6}}, 0, "1:6,9"},
		{NumSet{{4294967295, 4294967295}, {4294967294, 4294967295}}, 1, "4294967294:4294967295"},
	} {
		if got := c.set.Resolve(c.largest).String(); got != c.want {
			t.Errorf("%v with %d is %s, want %s", c.set, c.largest, got, c.want)
		}
	}
	if !Saved().IsSaved() || (NumSet{{1, Star}}).IsSaved() || (NumSet{{Star, 1<<32 - 1}}).IsSaved() {
		t.Error("IsSaved is wrong")
	}
}

func TestStringsAreWritten(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{string(AppendString(nil, `a "b\`, false)), `"a \"b\\"`},
		{string(AppendString(nil, "ä", false)), "{2}\r\nä"},
		{string(AppendString(nil, "ä", true)), `"ä"`},
		{string(AppendString(nil, "\xff", true)), "{1}\r\n\xff"},
		{string(AppendString(nil, "a\r\nb", true)), "{4}\r\na\r\nb"},
		{string(AppendNString(nil, "", false)), "NIL"},
		{string(AppendAstring(nil, "nil", false)), `"nil"`},
		{string(AppendAstring(nil, "", false)), `""`},
		{string(AppendAstring(nil, "a/b", false)), `a/b`},
		{string(AppendMailbox(nil, "Entwürfe", false)), `Entw&APw-rfe`},
		{string(AppendMailbox(nil, "Entwürfe", true)), `"Entwürfe"`},
		{string(AppendLiteral8(nil, []byte{0})), "~{1}\r\n\x00"},
		{string(AppendDateTime(nil, time.Date(1994, 2, 1, 1, 2, 3, 0, time.FixedZone("", 7200)))), `"31-Jan-1994 23:02:03 +0000"`},
		{string(AppendSection(nil, Section{[]int{1, 2}, "HEADER.FIELDS", []string{"From", "x y"}})), `[1.2.HEADER.FIELDS (FROM "X Y")]`},
		{string(AppendSection(nil, Section{})), `[]`},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
