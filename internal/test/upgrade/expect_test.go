package upgrade

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// expect is what a fixture's data directory has in it.
type expect struct {
	Version string   `json:"version"`
	People  []string `json:"people"` // who has every story
	Ended   string   `json:"ended"`  // who had, and has unsubscribed
	Events  []event  `json:"events"`
}

// An event of a fixture, in the state in which the server was killed.
type event struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	State  string   `json:"state"`  // one of the states below
	People []string `json:"people"` // who is to get it
	Got    []string `json:"got"`    // who has got it before
}

// The states of an event. All but finished are open, and what is missing of
// them must leave once each.
const (
	finished  = "finished"  // all of it has left
	refused   = "refused"   // all of it was refused for good
	deferred  = "deferred"  // all of it waits for its next try
	held      = "held"      // its channel is paused
	halfway   = "halfway"   // some of it has left, the rest lies on the bus
	parked    = "parked"    // it could not be loaded, and can be again
	unmatched = "unmatched" // accepted, and not matched yet
)

// The channels of the document: most have a relay of their own, so that one
// refuses and another defers.
const (
	mail    = "mail"
	slow    = "slow"
	later   = "later"
	never   = "never"
	waiting = "waiting"
)

var channels = []string{mail, slow, later, never, waiting}

// topicOf is the topic whose subscribers are reached by a channel.
func topicOf(channel string) string { return "by-" + channel }

// document declares the service "news", with the relay of each channel.
func document(relay func(channel string) string, rate string) string {
	text := "service: news\nchannels:\n"
	for _, c := range channels {
		text += fmt.Sprintf("  %s: {driver: smtp, relay: %q, from: \"News <news@example.org>\", connections: 2, rate: %s, expiry: 876000h, retry: [15s, 15s, 15s]}\n", c, relay(c), rate)
	}
	text += "topics:\n"
	for _, c := range channels {
		text += fmt.Sprintf(`  %s:
    schema: {type: object, required: [title], properties: {title: {type: string}, level: {type: number}}}
    template: story
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
`, topicOf(c))
	}
	return text + "templates:\n  story: {subject: \"{{ event.title }}\", text: \"Hello {{ subscriber.address }}\"}\n"
}

// crowd names n people.
func crowd(n int) []string {
	people := make([]string, n)
	for i := range people {
		people[i] = fmt.Sprintf("person%d@example.org", i)
	}
	return people
}

// fixtures is the folder with a folder for each release.
const fixtures = "testdata"

func (e *expect) read(version string) error {
	text, err := os.ReadFile(filepath.Join(fixtures, version, "expect.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, e)
}

func (e *expect) write() error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(fixtures, e.Version, "expect.json"), append(text, '\n'), 0o644)
}
