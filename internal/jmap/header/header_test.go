package header

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSection4123ReadsAddresses(t *testing.T) {
	for value, want := range map[string]string{
		``:                 `[]`,
		` joe@example.com`: `[{"name":null,"email":"joe@example.com"}]`,
		` "  James Smythe" <james@example.com>, Friends:
  jane@example.com, =?UTF-8?Q?John_Sm=C3=AEth?=
  <john@example.com>;`: `[{"name":"James Smythe","email":"james@example.com"},{"name":null,"email":"jane@example.com"},{"name":"John Smîth","email":"john@example.com"}]`,
		` a@example.com (Ann Other)`:                           `[{"name":"Ann Other","email":"a@example.com"}]`,
		` Pete(A nice \) chap) <pete(his account)@silly.test>`: `[{"name":"Pete","email":"pete(hisaccount)@silly.test"}]`,
		` =?utf-8?B?w6k=?= =?utf-8?B?w6k=?= Smith <e@x.org>`:   `[{"name":"éé Smith","email":"e@x.org"}]`,
		` "=?utf-8?Q?a?=" <e@x.org>`:                           `[{"name":"=?utf-8?Q?a?=","email":"e@x.org"}]`,
		` "a \"b\" c" <e@x.org>`:                               `[{"name":"a \"b\" c","email":"e@x.org"}]`,
		` <@a.org,@b.org:c@d.org>`:                             `[{"name":null,"email":"c@d.org"}]`,
		` ,, <a@b.org>,`:                                       `[{"name":null,"email":"a@b.org"}]`,
		` "john doe"@example.com`:                              `[{"name":null,"email":"\"john doe\"@example.com"}]`,
		` Undisclosed recipients:;`:                            `[]`,
		` Broken <a@b.org`:                                     `[{"name":null,"email":"Broken"}]`,
		` a b@c.org`:                                           `[{"name":null,"email":"ab@c.org"}]`,
	} {
		if got := asJSON(t, Addresses(value)); got != want {
			t.Errorf("%q:\n got %s\nwant %s", value, got, want)
		}
	}
}

func TestSection4124KeepsGroups(t *testing.T) {
	got := asJSON(t, Groups(` "  James Smythe" <james@example.com>, Friends: jane@example.com, =?UTF-8?Q?John_Sm=C3=AEth?= <john@example.com>; x@y.org, None:;`))
	want := `[{"name":null,"addresses":[{"name":"James Smythe","email":"james@example.com"}]},` +
		`{"name":"Friends","addresses":[{"name":null,"email":"jane@example.com"},{"name":"John Smîth","email":"john@example.com"}]},` +
		`{"name":null,"addresses":[{"name":null,"email":"x@y.org"}]},{"name":"None","addresses":[]}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSection4122DecodesText(t *testing.T) {
	for value, want := range map[string]string{
		" Dinner on\r\n Thursday?":             "Dinner on Thursday?",
		" =?utf-8?Q?caf=C3=A9?= =?utf-8?Q?s?=": "cafés",
		" cafe\u0301":                          "café",
		" =?unknown-charset?Q?a?=":             "a",
		" =?utf-8?X?a?=":                       "=?utf-8?X?a?=",
		" a\x00b":                              "ab",
		" =?utf-8?Q?a=00=0D=0Ab?=":             "ab",
		" \xff":                                "\ufffd",
	} {
		if got := Text(value); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

func TestSection4125ReadsMessageIDs(t *testing.T) {
	for value, want := range map[string]string{
		" <a@b> <c@d>": `["a@b","c@d"]`, " <a@b>\r\n\t(comment)<c@d>": `["a@b","c@d"]`, "": `null`, " a@b": `null`, " <a@b": `null`, " <>": `null`, " <a@b>,<c@d>": `["a@b","c@d"]`,
	} {
		if got := asJSON(t, MessageIDs(value)); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

func TestSection4126ReadsDates(t *testing.T) {
	for value, want := range map[string]string{
		" Thu, 30 Oct 2014 14:12:00 +0800": "2014-10-30T14:12:00+08:00", " 30 Oct 2014 06:12 +0000 (UTC)": "2014-10-30T06:12:00Z", " yesterday": "",
		" Thu, 30 Oct\r\n 2014 14:12:00 -0500": "2014-10-30T14:12:00-05:00", "": "",
	} {
		at, ok := Date(value)
		got := ""
		if ok {
			got = FormatDate(at)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

func TestSection4127ReadsURLs(t *testing.T) {
	value := " (Use this command to join the list)\r\n <mailto:list-manager@example.com?body=subscribe%20list>, <https://example.com/x>"
	if got := asJSON(t, URLs(value)); got != `["mailto:list-manager@example.com?body=subscribe%20list","https://example.com/x"]` {
		t.Errorf("got %s", got)
	}
	if got := URLs(" NO"); got != nil {
		t.Errorf("got %v", got)
	}
}

func FuzzForms(f *testing.F) {
	for _, seed := range []string{
		` "  James Smythe" <james@example.com>, Friends: jane@example.com, =?UTF-8?Q?John_Sm=C3=AEth?= <john@example.com>;`,
		" (a(b)c) <@r:x@y>\r\n\t\"q\\\"\", :;,", " <a@b> <c@d>", " Thu, 30 Oct 2014 14:12:00 +0800", " =?utf-8?B?w6k=?= =?x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, a := range Addresses(value) {
			if !utf8.ValidString(a.Email) || a.Name != nil && !utf8.ValidString(*a.Name) || a.Email == "" && a.Name == nil {
				t.Fatalf("%q gives %s", value, asJSON(t, a))
			}
		}
		texts := append(append(MessageIDs(value), URLs(value)...), Text(value), Raw(value))
		for _, text := range texts {
			if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
				t.Fatalf("%q gives %q", value, text)
			}
		}
		if at, ok := Date(value); ok {
			if text := FormatDate(at); len(text) != 20 && len(text) != 25 {
				t.Fatalf("%q gives %q", value, text)
			}
		}
	})
}
