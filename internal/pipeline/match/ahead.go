package match

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
)

// If the conditions of a topic take long, other nodes of a cluster evaluate them for the events of a piece, before the
// Matcher processes these events one after the other:
//
//	events of a piece --> chunks --> this node, and other nodes --> hits
//	                                                                  |
//	events, in order ------------> previous event, plan, freeze <-----+
//
// The hits of another node are used only if the event is evaluated with the same previous event, under the same
// definition of its topic, and if the verifier does not have to check each event of the topic. Otherwise, and after a
// failure, the Matcher evaluates the event itself.

const (
	// minAhead is the expected time for the conditions of a piece from which other nodes take part.
	minAhead = 2 * time.Millisecond
	// aheadChunk is the time for which a node is busy with the events that it gets at once.
	aheadChunk = 500 * time.Microsecond
	// maxChunk is the maximum number of events that a node gets at once.
	maxChunk = 64
	// requestsPerNode is how many requests a node has at a time, so that it does not wait for the next one.
	requestsPerNode = 2
	// localShare: the leader evaluates every such event itself, and checks the result; see package verify.
	localShare = 16
	// nodePatience is how long the leader waits for another node, in addition to the expected time. A node may be slower
	// than the leader by the factor slowNode.
	nodePatience = time.Second
	slowNode     = 20
	// costWeight is the weight of a new measurement in the average.
	costWeight = 0.05
)

// A Node is another node that matches events.
type Node interface {
	Name() string
	// Match returns the hits of each event of a topic. hits[i] is nil if the node could not match the event.
	Match(ctx context.Context, key condition.Key, events []condition.Event) (hits [][]fanfare.Hit, err error)
}

// costs are the average times of evaluations by topic. Goroutines of one Matcher share them.
type costs struct {
	mu sync.Mutex
	of map[uint32]time.Duration
}

func (c *costs) note(topic uint32, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[uint32]time.Duration{}
	}
	was, known := c.of[topic]
	if !known {
		was = took
	}
	c.of[topic] = was + time.Duration(costWeight*float64(took-was))
}

func (c *costs) get(topic uint32) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[topic]
}

// An answer is the hits of an event that was evaluated ahead.
type answer struct {
	ref        fanfare.EventRef
	topic      verify.Topic
	event      condition.Event
	definition *condition.Definition
	hits       []fanfare.Hit
	known      bool // hits are complete
}

// usable reports whether the hits of an answer are those of its event with the given previous event. a may be nil.
func (m *Matcher) usable(a *answer, previous json.RawMessage) bool {
	return a != nil && a.known && bytes.Equal(a.event.Previous, previous) && m.Index.DefinitionOf(a.topic.Key) == a.definition && !m.Verifier.ChecksEachEvent(a.topic)
}

// ahead evaluates events on other nodes. The result has an answer for each event, or is nil.
func (m *Matcher) ahead(ctx context.Context, r *round, events []*fanfare.AcceptedEvent) []*answer {
	if m.Nodes == nil || len(events) < 2 {
		return nil
	}
	nodes := m.Nodes()
	if len(nodes) == 0 {
		return nil
	}
	if m.expectedCost(events) < minAhead {
		return nil
	}
	answers := m.prepare(r, events)
	queue := make(chan []*answer, len(events))
	for _, chunk := range m.chunks(answers) {
		queue <- chunk
	}
	close(queue)
	var running sync.WaitGroup
	for _, n := range nodes {
		for range requestsPerNode {
			running.Go(func() {
				for chunk := range queue {
					if !m.answerFrom(ctx, n, chunk) {
						return
					}
				}
			})
		}
	}
	for chunk := range queue { // this node takes part
		m.answerHere(ctx, chunk)
	}
	running.Wait()
	return answers
}

// expectedCost returns the expected time for the conditions of events.
func (m *Matcher) expectedCost(events []*fanfare.AcceptedEvent) (cost time.Duration) {
	for _, event := range events {
		if event.Direct != nil || event.Run != nil {
			continue
		}
		if topic, ok := m.Registry.Topic(event.Service, event.Topic); ok {
			cost += m.costs.get(topic.Number)
		}
	}
	return cost
}

// prepare returns an answer without hits for each event that can be evaluated ahead. The previous event of a key may be
// one of the events themselves.
func (m *Matcher) prepare(r *round, events []*fanfare.AcceptedEvent) []*answer {
	answers := make([]*answer, len(events))
	earlier := map[fanfare.KeyRef]json.RawMessage{}
	for i, event := range events {
		if event.Direct != nil || event.Run != nil {
			continue
		}
		topic, ok := m.Registry.Topic(event.Service, event.Topic)
		if !ok {
			continue
		}
		of := VerifyTopic(topic)
		a := &answer{ref: event.Ref(), topic: of, event: condition.EventOf(&event.Event), definition: m.Index.DefinitionOf(of.Key)}
		if key, has, err := KeyOf(m.Index, topic, event.Event.Data); err == nil && has {
			if was, known := earlier[key]; known {
				a.event.Previous = was
			} else if last, known := r.states.Last(key); known && last.Event.Seq < event.Seq {
				a.event.Previous = last.Data
			}
			earlier[key] = event.Event.Data
		}
		answers[i] = a
	}
	return answers
}

// chunks divides answers into chunks of one topic each. It leaves out those that this node evaluates and checks later.
func (m *Matcher) chunks(answers []*answer) (chunks [][]*answer) {
	var chunk []*answer
	var spent time.Duration
	for _, a := range answers {
		if a == nil || m.Verifier.ChecksEachEvent(a.topic) {
			continue
		}
		if m.sample++; m.sample%localShare == 0 {
			continue
		}
		if len(chunk) > 0 && (chunk[0].topic != a.topic || len(chunk) == maxChunk || spent >= aheadChunk) {
			chunks, chunk, spent = append(chunks, chunk), nil, 0
		}
		chunk, spent = append(chunk, a), spent+m.costs.get(a.topic.Number)
	}
	if len(chunk) > 0 {
		chunks = append(chunks, chunk)
	}
	return chunks
}

// answerFrom sets the answers of a chunk to those of a node, and reports whether the node replied.
func (m *Matcher) answerFrom(ctx context.Context, n Node, chunk []*answer) bool {
	ctx, cancel := context.WithTimeout(ctx, nodePatience+slowNode*time.Duration(len(chunk))*m.costs.get(chunk[0].topic.Number))
	defer cancel()
	events := make([]condition.Event, len(chunk))
	for i, a := range chunk {
		events[i] = a.event
	}
	hits, err := n.Match(ctx, chunk[0].topic.Key, events)
	if err != nil {
		return false
	}
	for i, a := range chunk {
		a.hits, a.known = hits[i], hits[i] != nil
	}
	return true
}

// answerHere evaluates a chunk on this node. An event without an answer is evaluated again in its turn, which finds the
// error.
func (m *Matcher) answerHere(ctx context.Context, chunk []*answer) {
	for _, a := range chunk {
		began := m.Clock.Now()
		hits, err := m.Verifier.Match(ctx, a.topic, a.ref.String(), a.event, nil)
		m.costs.note(a.topic.Number, m.Clock.Now().Sub(began))
		a.hits, a.known = hits, err == nil
	}
}
