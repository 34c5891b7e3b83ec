package storetest_test

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store"
)

func TestTextsComeBackAsTheyWereWhereTheyAreTexts(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		texts := []string{"", " ", "'; DROP TABLE attempts; --", "{\"a\":\"\\u0000\"}", "\\x00 \\N", "Grüße, 世界 👋🏽", "e\u0301 is not é", "\uFFFD", "\u2028",
			"line\r\nline\ttab", "\x01\x7f", "\U0010FFFF", strings.Repeat("long ", 50_000),
			"zero\x00byte\x00", "no \xff UTF-8", "cut \xe4\xb8", "half a pair \xed\xa0\x80"}
		var rows []attempt
		for i, text := range texts {
			rows = append(rows, attempt{manifest: 1, position: int64(i), text: text, relay: text + "!", address: "@" + text})
		}
		write(t, day, func(s store.Session) error { return insertAttempts(s, rows...) })
		for i := range rows {
			rows[i].text, rows[i].relay, rows[i].address = store.Text(rows[i].text), store.Text(rows[i].relay), store.Text(rows[i].address)
		}
		read(t, day, func(s store.Session) error {
			got, err := attempts(s, 1)
			for i := range min(len(got), len(rows)) {
				if got[i] != rows[i] {
					t.Errorf("%.80q came back as %.80q", rows[i].text, got[i].text)
				}
			}
			if len(got) != len(rows) {
				t.Errorf("%d rows came back, want %d", len(got), len(rows))
			}
			return err
		})
		// As an argument of a statement of its own.
		for i, text := range texts {
			seq := int64(i)
			write(t, day, func(s store.Session) error { return s.Run("switch", seq, int64(0), text, "", int64(1)) })
			read(t, day, func(s store.Session) error {
				seen := ""
				err := s.Each("switches", func(r store.Row) error {
					if r.Int64(0) == seq {
						seen = r.Text(2)
					}
					return nil
				})
				if seen != store.Text(text) {
					t.Errorf("%.80q came back as %.80q", text, seen)
				}
				return err
			})
		}
	})
}
