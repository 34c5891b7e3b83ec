package render

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The workload: individual digests of 5 of 2,000 events, in text and HTML.
func BenchmarkWriteDigest(b *testing.B) {
	data := make([]string, 2000)
	for i := range data {
		data[i] = fmt.Sprintf(`{"title":"Notice %d about what has changed","summary":%q,"link":"https://example.org/n/%d"}`, i, strings.Repeat("Some words. ", 8), i)
	}
	for name, src := range map[string]Source{
		"items": {
			Subject: "{{ count }} new notices",
			Text:    "Hello {{ subscriber.id }},\n{% for item in items %}\n{{ item.event.title }}\n{{ item.event.summary }}\n{{ item.event.link }}\n{% endfor %}\n{% if more > 0 %}and {{ more }} more\n{% endif %}{{ unsubscribe_url }}\n",
			HTML:    "<h1>{{ count }} new notices</h1>{% for item in items %}<h2><a href=\"{{ item.event.link }}\">{{ item.event.title }}</a></h2>\n<p>{{ item.event.summary }}</p>\n{% endfor %}{{ unsubscribe_url }}\n",
		},
		"numbered, lists that come again": {
			Subject: "{{ count }} new notices",
			Text:    "{% for item in items %}{{ forloop.index }}. {{ item.event.title }}\n{{ item.event.summary }}\n{{ item.event.link }}\n{% endfor %}\n",
		},
		"items and whose they are": {
			Subject: "{{ count }} new notices",
			Text:    "{% for item in items %}{{ item.event.title }} ({{ item.subscription.rule }})\n{{ item.event.summary }}\n{{ item.event.link }}\n{% endfor %}\n",
		},
	} {
		b.Run(name, func(b *testing.B) {
			m := newDigest(b, src, data...)
			w, err := m.Writer()
			if err != nil {
				b.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, 2))
			people := make([]*Recipient, 512)
			for i := range people {
				numbers := make([]uint32, 5)
				for j := range numbers {
					numbers[j] = random.Uint32N(uint32(len(data)))
				}
				slices.Sort(numbers)
				people[i] = told(0, slices.Compact(numbers)...)
			}
			var dst []byte
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, dst, err = w.Write(dst[:0], people[i%len(people)]); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(dst)))
		})
	}
}
