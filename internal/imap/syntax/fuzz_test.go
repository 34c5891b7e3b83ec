package syntax

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// FuzzParse reads arbitrary commands. The parser must not panic, must name an error, and must read the same command from the bytes
// up to its end.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"a NOOP", "a LOGIN {4}\r\nuser \"pass\"", "a AUTHENTICATE PLAIN AGEAYg==", "a ID (\"a\" NIL)", "a SELECT x (QRESYNC (1 2 3:4 (5,6 7,8)) CONDSTORE)", "a LIST (SUBSCRIBED) \"\" (% *) RETURN (STATUS (SIZE))",
		"a APPEND x (\\Seen) \" 1-Feb-1994 12:34:56 +0100\" ~{3+}\r\nabc UTF8 (~{1}\r\nx)", "a UID STORE 1:*,3 (UNCHANGEDSINCE 1) -FLAGS.SILENT (a b)", "a UID FETCH $ (UID BODY.PEEK[1.2.HEADER.FIELDS.NOT (A)]<1.2> BINARY.SIZE[1]) (CHANGEDSINCE 1 VANISHED)",
		"a SEARCH RETURN (SAVE) CHARSET UTF-8 OR (NOT 1 UID 3:*) HEADER \"a\" {1}\r\nb SENTON 1-Jan-2000 MODSEQ \"/flags/\\\\Seen\" all 3", "a SETQUOTA \"\" (STORAGE 1)", "a CREATE x (USE (\\Sent))", "a STATUS x (MESSAGES)",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := Parse(raw)
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) || bad.Text == "" || c != nil {
				t.Fatalf("error %v with %v", err, c)
			}
			return
		}
		if c.Tag == "" || c.Name == "" || !bytes.HasPrefix(raw, []byte(c.Tag)) {
			t.Fatalf("read %+v from %q", c, raw)
		}
		if a, ok := c.Args.(*Append); ok {
			for _, m := range a.Messages {
				if len(m.Data) > 0 && !bytes.Contains(raw, m.Data) {
					t.Fatal("the message is not in the command")
				}
			}
		}
		if _, err := Parse(append(slices.Clone(raw), ' ')); err != nil {
			t.Fatalf("a space at the end: %v", err)
		}
	})
}

// FuzzMailbox checks that a name in modified UTF-7 has one form, and that each valid name has one.
func FuzzMailbox(f *testing.F) {
	for _, seed := range []string{"~peter/mail/&U,BTFw-/&ZeVnLIqe-", "A&-B", "&2D3eAA-", "ä&", "&AGE-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if name, err := DecodeMailbox(text, false); err == nil && !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 }) {
			if again := EncodeMailbox(name, false); again != text {
				t.Fatalf("%q is decoded as %q and encoded as %q", text, name, again)
			}
		}
		name, err := DecodeMailbox(text, true)
		if err != nil {
			return
		}
		encoded := EncodeMailbox(name, false)
		if again, err := DecodeMailbox(encoded, false); err != nil || again != name {
			t.Fatalf("%q is encoded as %q and decoded as %q, %v", name, encoded, again, err)
		}
	})
}

// FuzzSet compares a resolved set with a plain test of each range.
func FuzzSet(f *testing.F) {
	f.Add([]byte{1, 3, 0, 2, 9, 5}, uint8(7))
	f.Fuzz(func(t *testing.T, raw []byte, largest uint8) {
		var set NumSet
		for i := 0; i+1 < min(len(raw), 64); i += 2 {
			set = append(set, Range{uint32(raw[i]), uint32(raw[i+1])})
		}
		resolved := set.Resolve(uint32(largest))
		var count int64
		for n := uint32(1); n <= 256; n++ {
			want := false
			for _, r := range set {
				from, to := r.From, r.To
				if from == Star {
					from = uint32(largest)
				}
				if to == Star {
					to = uint32(largest)
				}
				want = want || min(from, to) <= n && n <= max(from, to)
			}
			if want {
				count++
			}
			if resolved.Contains(n) != want {
				t.Fatalf("%v with %d contains %d: %v", set, largest, n, !want)
			}
		}
		if resolved.Count() != count {
			t.Fatalf("%v has %d numbers, want %d", resolved, resolved.Count(), count)
		}
	})
}
