package imap_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/imap/search"
	"fanfare.dev/fanfare/internal/mailbox"
)

// BenchmarkSearch measures UID SEARCH BODY in a mailbox with 1,000 messages of 2 to 200 KB, whose words are those of the documentation.
func BenchmarkSearch(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprintf("index=%v", with), func(b *testing.B) {
			texts := searchTexts(b)
			r := rand.New(rand.NewPCG(1, 2))
			o := mailbox.Options{}
			if with {
				o.SearchTexts = search.Texts
			}
			w := newWorldWith(b, o, nil)
			c := w.login(1)
			list, err := w.store.AccountsOf(context.Background(), "person1@example.org")
			must(b, err)
			bytes := 0
			for i := range 1000 {
				size := int(2000 * math.Exp(r.Float64()*math.Log(100)))
				var body strings.Builder
				for at := r.IntN(len(texts)); body.Len() < size; at = (at + 1) % len(texts) {
					body.WriteString(texts[at] + " ")
					if at%12 == 0 {
						body.WriteString("\r\n")
					}
				}
				content := fmt.Appendf(nil, "Subject: message %d\r\n\r\n%s", i, body.String())
				bytes += len(content)
				_, err := w.store.Append(context.Background(), list[0].ID, []mailbox.NewMessage{{Mailbox: mailbox.InboxID, Content: content}})
				must(b, err)
			}
			began := time.Now()
			for n := 1; n > 0; {
				n, err = w.store.Index(context.Background())
				must(b, err)
			}
			indexing := time.Since(began)
			c.ok("SELECT INBOX")
			words := slices.Compact(slices.Sorted(slices.Values(texts))) // each is as likely, so that most are rare
			var took []time.Duration
			for b.Loop() {
				word := words[r.IntN(len(words))]
				began := time.Now()
				c.ok("UID SEARCH BODY %s", word)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(bytes)/1000, "bytes/message")
			if with {
				b.ReportMetric(1000/indexing.Seconds(), "indexed/s")
			}
		})
	}
}

// searchTexts returns the words of the documentation.
func searchTexts(b *testing.B) []string {
	files, err := filepath.Glob("../../docs/*/*.md")
	must(b, err)
	word := regexp.MustCompile("[A-Za-z][a-z]+")
	var all []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(b, err)
		all = append(all, word.FindAllString(string(data), -1)...)
	}
	return all
}
