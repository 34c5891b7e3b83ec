//go:build crashsteps

package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"fanfare.dev/fanfare/client"
)

// The two topics: a story goes to everybody and takes long, notes go to few and
// come all the time.
const (
	story = "story"
	note  = "note"
)

const document = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, retry: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]}
topics:
  story:
    schema: {type: object, required: [title], properties: {title: {type: string}, level: {type: number}}}
    template: message
    lane: bulk
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
  note:
    schema: {type: object, required: [title], properties: {title: {type: string}}}
    template: message
    lane: urgent
templates:
  message:
    subject: "{{ event.title }}"
    text: "Hello {{ subscriber.address }}: {{ event.title }}\n"
`

// connections is how many the channel may have open.
const connections = 50

// member is one subscription as the test put it, with all that it did since.
type member struct {
	put     client.Subscription
	history Timeline
}

// people are the subscribers of a topic by address, with their subscriptions.
type people map[string][]*member

// audience is what the judge needs to know of them.
func (p people) audience() Audience {
	a := make(Audience, len(p))
	for address, members := range p {
		for _, m := range members {
			a[address] = append(a[address], m.history)
		}
	}
	return a
}

// wants and excludes are params of the rule level, for events of level 5.
var (
	wants    = json.RawMessage(`{"from":1}`)
	excludes = json.RawMessage(`{"from":9}`)
)

// reader is a member who is told of each story. Every tenth has a filter of
// their own beside the rule, so that two subscriptions match.
func reader(id int) (address string, members []*member) {
	address = fmt.Sprintf("reader%d@example.org", id)
	members = []*member{{put: client.Subscription{ID: fmt.Sprintf("rule%d", id), Topic: story, Channel: "email", To: address, Rule: "level", Params: wants}}}
	if id%10 == 0 {
		members = append(members, &member{put: client.Subscription{ID: fmt.Sprintf("own%d", id), Topic: story, Channel: "email", To: address,
			Filter: fmt.Sprintf("event.level > %d", id/10%5)}})
	}
	return address, members
}

// subscribe imports n readers of stories and a few of notes.
func (w *world) subscribe(n, notes int) {
	w.t.Helper()
	w.readers, w.noted = make(people, n), make(people, notes)
	for i := range n {
		address, members := reader(i)
		w.readers[address] = members
	}
	for i := range notes {
		address := fmt.Sprintf("noted%d@example.org", i)
		w.noted[address] = []*member{{put: client.Subscription{ID: fmt.Sprintf("note%d", i), Topic: note, Channel: "email", To: address}}}
	}
	for _, all := range []people{w.readers, w.noted} {
		sent := time.Now()
		sum, err := w.server.current().client.PutSubscriptions(w.t.Context(), func(yield func(client.Subscription, error) bool) {
			for _, members := range all {
				for _, m := range members {
					if !yield(m.put, nil) {
						return
					}
				}
			}
		}, nil)
		if err != nil || sum.Failed > 0 {
			w.t.Fatalf("import: %+v, %v", sum, err)
		}
		acked := time.Now()
		for _, members := range all {
			for _, m := range members {
				m.history = append(m.history, Change{Sent: sent, Acked: acked, Wants: true})
			}
		}
	}
}

// churn is one client that adds, changes and ends subscriptions until it is
// told to stop. It owns the readers whose number it has, so that the changes of
// each subscription come one after the other.
type churn struct {
	server *server
	number int
	random *rand.Rand
	mine   []*member
	joined people
	away   int // of mine, how many do not want stories now
	done   int // changes
	ends   int // of those
}

// churning starts clients; wait returns when all have ended their last change,
// and adds those who joined to the readers.
func (w *world) churning(ctx context.Context, clients int) (wait func()) {
	all := make([]*churn, clients)
	for i := range all {
		all[i] = &churn{server: w.server, number: i, random: w.random(100 + i), joined: people{}}
	}
	for i := range len(w.readers) {
		address, _ := reader(i)
		c := all[i%clients]
		c.mine = append(c.mine, w.readers[address]...)
	}
	var running sync.WaitGroup
	for _, c := range all {
		running.Go(func() {
			if err := c.run(ctx, w.given); err != nil {
				w.fail(err)
			}
		})
	}
	return func() {
		running.Wait()
		for _, c := range all {
			w.changes += c.done
			w.ends += c.ends
			for address, members := range c.joined {
				w.readers[address] = members
			}
		}
	}
}

// run makes changes until stop ends. One that was sent is brought to its
// acknowledgement, within limit.
func (c *churn) run(stop, limit context.Context) error {
	for ; stop.Err() == nil; c.done++ {
		m := c.mine[c.random.IntN(len(c.mine))]
		last := m.history[len(m.history)-1]
		change := Change{Wants: true}
		switch kind := c.random.IntN(10); {
		case kind == 0:
			m = c.join()
		case !last.Wants: // comes back
			c.away--
		case c.away > len(c.mine)/4: // stays, and says so again
		case kind < 4 && m.put.Rule != "":
			c.away++
			change = Change{}
		default:
			c.away++
			c.ends++
			change = Change{Ended: true}
		}
		change.Sent = time.Now()
		if err := c.server.do(limit, func(ctx context.Context, api *client.Client) error { return c.send(ctx, api, m, change) }); err != nil {
			return fmt.Errorf("subscription %s could not be changed: %w", m.put.ID, err)
		}
		change.Acked = time.Now()
		m.history = append(m.history, change)
	}
	return nil
}

func (c *churn) send(ctx context.Context, api *client.Client, m *member, change Change) error {
	if change.Ended {
		return api.EndSubscription(ctx, m.put.ID, "the test")
	}
	if m.put.Rule != "" {
		m.put.Params = excludes
		if change.Wants {
			m.put.Params = wants
		}
	}
	_, err := api.PutSubscription(ctx, m.put)
	return err
}

// join makes a reader whom nobody knows yet.
func (c *churn) join() *member {
	address := fmt.Sprintf("joined%d-%d@example.org", c.number, len(c.joined))
	m := &member{put: client.Subscription{ID: address, Topic: story, Channel: "email", To: address, Rule: "level"}}
	c.joined[address] = []*member{m}
	return m
}
