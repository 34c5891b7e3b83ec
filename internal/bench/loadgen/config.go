package loadgen

import (
	"cmp"
	"fmt"
)

// AlertsOfEach is the number of price alerts of each person.
const AlertsOfEach = 5

// Connections is the number of connections to the sink, of the product and of the raw
// sender.
const Connections = 50

// Nowhere is the address of a relay that does not exist, for experiments that send
// nothing.
const Nowhere = "127.0.0.1:9"

// Configuration returns the configuration document of most experiments.
func Configuration(relay, retry string) []byte {
	return Channel{Relay: relay, Retry: retry}.Configuration(Service)
}

// A Channel has the settings of a channel that differ between experiments.
type Channel struct {
	Relay       string // host:port of SMTP
	Driver      string // fields of another driver; "": SMTP to the relay
	Retry       string
	Connections int    // 0: 50
	Rate        string // "": unlimited
	Reserve     string // "": the default of a channel
}

// SenderField is the field from of every mail channel.
const SenderField = `from: "Alerts <alerts@example.org>"`

func (w Channel) Document() string {
	reserve := ""
	if w.Reserve != "" {
		reserve = ", reserve: " + w.Reserve
	}
	return fmt.Sprintf(`{%s, connections: %d, rate: %s, retry: [%s]%s}`,
		cmp.Or(w.Driver, fmt.Sprintf("driver: smtp, relay: %q, %s", w.Relay, SenderField)), cmp.Or(w.Connections, Connections), cmp.Or(w.Rate, "unlimited"), w.Retry, reserve)
}

// Configuration returns the document of a service with this channel and with the topic
// and template of N1.
func (w Channel) Configuration(service string) []byte {
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
`, service, w.Document())
}

// A news is the data of the event that every subscription matches.
type News struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Link        string `json:"link,omitempty"`
}

func NewsOfTheDay() News {
	return News{
		Title:       "Ferry service between Vancouver and Victoria resumes",
		Description: "Sailings run every two hours again.",
	}
}

// Service is the name of the only service of a server under test.
const Service = "bench"
