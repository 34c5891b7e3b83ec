package loadgen

import (
	"cmp"
	"fmt"
)

// AlertsOfEach is how many price alerts a person of an experiment with a server has.
const AlertsOfEach = 5

// Connections to the sink, of the product and of what it is held against.
const Connections = 50

// Nowhere is a relay that nobody listens at; these experiments send nothing.
const Nowhere = "127.0.0.1:9"

// Configuration is the apply document of the experiments.
func Configuration(relay, retry string) []byte {
	return Channel{Relay: relay, Retry: retry}.Configuration(Service)
}

// A Channel is the settings of a channel where they differ between experiments.
type Channel struct {
	Relay       string // host:port of SMTP
	Driver      string // "": SMTP to the relay, else the fields that stand for it
	Retry       string
	Connections int    // 0: 50
	Rate        string // "": unlimited
	Reserve     string // "": as a channel has it
}

// SenderField is what channels of mail have.
const SenderField = `from: "Alerts <alerts@example.org>"`

func (w Channel) Document() string {
	reserve := ""
	if w.Reserve != "" {
		reserve = ", reserve: " + w.Reserve
	}
	return fmt.Sprintf(`{%s, connections: %d, rate: %s, retry: [%s]%s}`,
		cmp.Or(w.Driver, fmt.Sprintf("driver: smtp, relay: %q, %s", w.Relay, SenderField)), cmp.Or(w.Connections, Connections), cmp.Or(w.Rate, "unlimited"), w.Retry, reserve)
}

// Configuration is that of a service with the topic and template of N1.
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

// A news is the data of the one event that everybody wants.
type news struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Link        string `json:"link,omitempty"`
}

func NewsOfTheDay() news {
	return news{
		Title:       "Ferry service between Vancouver and Victoria resumes",
		Description: "Sailings run every two hours again.",
	}
}

// Service is the only one of a bench server.
const Service = "bench"
