package bench

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// notifyFilter is the one of NotifyBC's published test.
const notifyFilter = "contains_ci(title,'vancouver') || contains_ci(title,'victoria')"

// A person is one subscriber of an experiment, by number from 0.
type person int

func (p person) address() string { return string(p.appendAddress(nil)) }

func (p person) appendAddress(dst []byte) []byte {
	dst = append(dst, "person"...)
	dst = appendPadded(dst, uint64(p), 8)
	return append(dst, "@example.net"...)
}

// appendLink appends a link that is this person's own.
func (p person) appendLink(dst []byte, seed uint64) []byte {
	dst = append(dst, "https://alerts.example.org/read/"...)
	h := mix(seed ^ uint64(p))
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[h>>shift&15])
	}
	return dst
}

func appendPadded(dst []byte, n uint64, width int) []byte {
	digits := strconv.AppendUint(nil, n, 10)
	for range width - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// appendSubscription appends the line of one subscription as the bulk import
// takes it.
func appendSubscription(dst []byte, p person, seed uint64, filter string) []byte {
	dst = append(dst, `{"topic":"news","channel":"email","to":"`...)
	dst = p.appendAddress(dst)
	dst = append(dst, `","filter":`...)
	dst = strconv.AppendQuote(dst, filter)
	dst = append(dst, `,"data":{"link":"`...)
	dst = p.appendLink(dst, seed)
	return append(dst, "\"}}\n"...)
}

// writeLines makes a file of what line appends for 0 to n-1, and returns its size.
func writeLines(path string, n int, line func(dst []byte, i int) []byte) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	var size int64
	var buf []byte
	for i := range n {
		buf = line(buf[:0], i)
		size += int64(len(buf))
		if _, err := out.Write(buf); err != nil {
			return 0, errors.Join(err, f.Close())
		}
	}
	return size, errors.Join(out.Flush(), f.Close())
}

// configuration is the apply document of the experiments.
func configuration(relay, retry string) []byte {
	return way{relay: relay, retry: retry}.configuration(service)
}

// A way is the settings of a channel where they differ between experiments.
type way struct {
	relay       string // host:port of SMTP
	driver      string // "": SMTP to the relay, else the fields that stand for it
	retry       string
	connections int    // 0: 50
	rate        string // "": unlimited
	reserve     string // "": as a channel has it
}

// senderField is what channels of mail have.
const senderField = `from: "Alerts <alerts@example.org>"`

func (w way) channel() string {
	reserve := ""
	if w.reserve != "" {
		reserve = ", reserve: " + w.reserve
	}
	return fmt.Sprintf(`{%s, connections: %d, rate: %s, retry: [%s]%s}`,
		cmp.Or(w.driver, fmt.Sprintf("driver: smtp, relay: %q, %s", w.relay, senderField)), cmp.Or(w.connections, connections), cmp.Or(w.rate, "unlimited"), w.retry, reserve)
}

// configuration is that of a service with the topic and template of N1.
func (w way) configuration(service string) []byte {
	return fmt.Appendf(nil, `service: %s
channels:
  email: %s
topics:
  news:
    schema:
      type: object
      required: [title, description]
      properties: {title: {type: string}, description: {type: string}, link: {type: string}}
    template: news
templates:
  news:
    subject: "{{ event.title }}"
    text: |
      {{ event.title }}

      {{ event.description }}

      Read on: {{ subscription.data.link }}

      Leave this list: {{ unsubscribe_url }}
    html: |
      <h1>{{ event.title }}</h1>
      <p>{{ event.description }}</p>
      <p><a href="{{ subscription.data.link }}">Read on</a></p>
      <p><a href="{{ unsubscribe_url }}">Leave this list</a></p>
`, service, w.channel())
}

// A news is the data of the one event that everybody wants.
type news struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Link        string `json:"link,omitempty"`
}

func newsOfTheDay() news {
	return news{
		Title:       "Ferry service between Vancouver and Victoria resumes",
		Description: "Sailings run every two hours again.",
	}
}
