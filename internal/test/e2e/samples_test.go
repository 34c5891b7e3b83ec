package e2e

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// madeID is an id that the server makes; the first part says of what.
var madeID = regexp.MustCompile(`\b((evt|dlv|msg|prk|key|aud|ses|tsk)-[0-9][0-9a-f-]*|snd-[a-z2-7]{12}\b)`)

// A cast plays the parts of the ids in the examples: those of the server of the
// test, the latest of each kind.
type cast map[string]string

func (c cast) learn(answer string) {
	for _, id := range madeID.FindAllString(answer, -1) {
		kind, _, _ := strings.Cut(id, "-")
		c[kind] = id
	}
}

func (c cast) play(text string) string {
	return madeID.ReplaceAllStringFunc(text, func(id string) string {
		kind, _, _ := strings.Cut(id, "-")
		if mine := c[kind]; mine != "" {
			return mine
		}
		return id
	})
}

// target is the path and query of a sample.
func (s *sample) target(c cast) string {
	path, query := s.op.path, url.Values{}
	for name, value := range s.Parameters {
		if strings.Contains(path, "{"+name+"}") {
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(c.play(value)))
		} else {
			query.Set(name, c.play(value))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

func TestEveryExampleOfTheDocumentIsAnsweredAsItSays(t *testing.T) {
	t.Parallel()
	s := serve(t)
	d := described(s)
	shown := map[string]bool{}
	for _, op := range d.operations() {
		shown[op.id] = false
	}
	who := cast{}
	caller := *s.http
	caller.service = "" // there is one service only
	for _, sample := range d.samples() {
		shown[sample.op.id] = true
		target := sample.target(who)
		if sample.op.id == "get-event" || sample.op.id == "explain-event" {
			caller.completedOrRunning(who["evt"])
		}
		status, body, header := caller.send(sample.op.method, target, sample.MediaType, who.play(sample.body))
		if status != sample.Status {
			t.Errorf("%s: %s %s: got %d, the document says %d: %s", sample.op.id, sample.op.method, target, status, sample.Status, body)
			continue
		}
		if err := d.answered(sample.op, status, header, body); err != nil {
			t.Errorf("%s: %s %s: %v: %s", sample.op.id, sample.op.method, target, err, body)
		}
		if status == 201 || status == 202 { // something was made
			who.learn(body)
		} else if id := regexp.MustCompile(`dlv-[0-9a-f-]+`).FindString(body); id != "" {
			who["dlv"] = id // nobody makes a delivery: it is listed
		}
	}
	for id, ran := range shown {
		if !ran {
			t.Errorf("%s has no example: add one to samples in internal/httpapi/openapi", id)
		}
	}
}

// completedOrRunning waits until an event is matched.
func (c *caller) completedOrRunning(event string) {
	c.t.Helper()
	eventually(c.t, event+" is matched", func() bool {
		status, text, _ := c.send("GET", "/v1/events/"+event, "", "")
		return status == 200 && !strings.Contains(text, `"queued"`)
	})
}
