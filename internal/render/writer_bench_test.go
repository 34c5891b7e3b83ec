package render

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/mail/signedlink"
)

// The workload: about 1 KB of text and HTML together, four personal fields.
func benchmarkMailing(b *testing.B, body string) MailBatch {
	b.Helper()
	filler := strings.Repeat(body+"\n", 5)
	m := newMailing(b, Source{
		Subject: "{{ event.title }}",
		Text: "Hello {{ subscriber.id }},\n\n{{ event.title }}\n" + filler +
			"Your link: {{ subscription.data.link }}\nUnsubscribe: {{ unsubscribe_url }}\n",
		HTML: "<html><body><h1>{{ event.title }}</h1>\n<p>" + filler +
			"</p>\n<a href=\"{{ subscription.data.link }}\">open</a>\n</body></html>\n",
	}, `{"title":"M 5.3 - 50km NNW of Sangiang, Indonesia"}`)
	signer := testSigner(b)
	m.UnsubscribeURL = func(dst []byte, r *Recipient) []byte {
		return signer.AppendURL(dst, signedlink.Link{Service: "earthquakes", Delivery: r.Delivery})
	}
	return m
}

func BenchmarkWrite(b *testing.B) {
	ascii := "It was felt by many who live in the region, and reported at once. Follow the advice."
	german := "Es wurde von vielen gespürt, die in der Gegend wohnen, und gleich gemeldet. Größe 5."
	run := func(name string, m MailBatch) {
		b.Run(name, func(b *testing.B) {
			w, err := m.Writer()
			if err != nil {
				b.Fatal(err)
			}
			r := newRecipient()
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				_, dst, err = w.Write(dst[:0], r)
				if err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(dst)))
		})
	}
	m := benchmarkMailing(b, ascii)
	run("split", m)
	filtered := m
	var err error
	if filtered.Template, err = Compile(Source{Name: "x", Subject: "{{ event.title }}",
		Text: "Hello {{ subscriber.attributes.name | default: 'friend' }},\n" + strings.Repeat(ascii+"\n", 10) + "{{ unsubscribe_url }}\n"}); err != nil {
		b.Fatal(err)
	}
	run("split, one filter", filtered)
	run("split, quoted-printable", benchmarkMailing(b, german))
	m.Template = undivided(m.Template)
	run("whole", m)
}

func BenchmarkWriter(b *testing.B) {
	m := benchmarkMailing(b, "text")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Writer(); err != nil {
			b.Fatal(err)
		}
	}
}
