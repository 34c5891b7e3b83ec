package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// releaseValidity is the maximum age of a release when it is used. When the leader grants a release, its lease is valid for
// at least this long, so a body never begins under the lease of another leader.
const releaseValidity = time.Second

// nodeQueue is the queue of one connection on the node: the leader makes each call.
type nodeQueue struct {
	link    *link.Link
	stream  uint32
	ctx     context.Context    // of the driver
	stop    context.CancelFunc // ends ctx
	replies chan []byte

	calling sync.Mutex // held during a call
	number  uint32     // of the last call of Next
	request []byte
	last    content         // of the message that the leader sent last
	ahead   *driver.Message // came with the reply to a report, for the next call of Next
}

var _ driver.Queue = (*nodeQueue)(nil)

// nodeMessage is a message that this connection holds.
type nodeMessage struct {
	driver.Message
	id       uint32
	released bool
}

func ownerOf(m *driver.Message) *nodeMessage { return m.Owner.(*nodeMessage) }

// begin starts a request.
func (q *nodeQueue) begin(o op) {
	q.calling.Lock()
	q.request = append(q.request[:0], byte(o))
}

func (q *nodeQueue) addMessages(messages ...*driver.Message) {
	q.request = binary.AppendUvarint(q.request, uint64(len(messages)))
	for _, m := range messages {
		q.request = binary.AppendUvarint(q.request, uint64(ownerOf(m).id))
	}
}

// call sends the request and waits for the reply. When ctx ends, it cancels the call and still waits for the reply.
func (q *nodeQueue) call(ctx context.Context) *link.Decoder {
	q.link.Send(kindCall, q.stream, q.request)
	select {
	case reply := <-q.replies:
		return &link.Decoder{Rest: reply}
	case <-q.link.Context().Done():
		return &link.Decoder{Err: context.Cause(q.link.Context())}
	case <-ctx.Done():
	}
	q.link.Send(kindCancel, q.stream, binary.AppendUvarint(nil, uint64(q.number)))
	select {
	case reply := <-q.replies:
		return &link.Decoder{Rest: reply}
	case <-q.link.Context().Done():
		return &link.Decoder{Err: context.Cause(q.link.Context())}
	}
}

// background is the context of calls that end soon.
var background = context.Background()

// receive reads a message of a reply.
func (q *nodeQueue) receive(d *link.Decoder, before content) *driver.Message {
	n := &nodeMessage{}
	var individual bool
	n.id, individual, n.Message = readMessage(d, before)
	if d.Err != nil {
		return nil
	}
	n.Owner = n
	if individual {
		n.Individual = func() (driver.Message, error) { return q.individual(n) }
	}
	return &n.Message
}

// Next returns the next message; see driver.Queue.
func (q *nodeQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	q.begin(opNext)
	defer q.calling.Unlock()
	if m := q.ahead; m != nil {
		q.ahead = nil
		return m, nil
	}
	q.number++
	q.request = binary.AppendUvarint(q.request, uint64(q.number))
	if wait {
		q.request = append(q.request, 1)
	} else {
		q.request = append(q.request, 0)
	}
	d := q.call(ctx)
	text := d.Text()
	switch {
	case d.Err != nil:
		return nil, d.Err
	case len(d.Rest) == 0:
		return nil, asError(text)
	}
	m := q.receiveNext(d)
	if d.Err != nil {
		return nil, d.Err
	}
	return m, asError(text)
}

// receiveNext reads the message that the leader's call of Next returned.
func (q *nodeQueue) receiveNext(d *link.Decoder) *driver.Message {
	m := q.receive(d, q.last)
	if d.Err != nil {
		q.link.End(d.Err)
		return nil
	}
	q.last = content{m.Body, m.Attachments}
	return m
}

// TakeSameContent takes messages with the same content; see driver.Queue.
func (q *nodeQueue) TakeSameContent(dst []*driver.Message, message *driver.Message, most int) []*driver.Message {
	q.begin(opTake)
	defer q.calling.Unlock()
	q.request = binary.AppendUvarint(q.request, uint64(ownerOf(message).id))
	q.request = binary.AppendUvarint(q.request, uint64(max(0, most)))
	d := q.call(background)
	for n := d.Uint32(); n > 0 && d.Err == nil; n-- {
		if m := q.receive(d, content{message.Body, message.Attachments}); m != nil {
			dst = append(dst, m)
		}
	}
	if d.Err != nil {
		q.link.End(d.Err)
	}
	return dst
}

// Failover passes a message to another next hop; see driver.Queue.
func (q *nodeQueue) Failover(message *driver.Message, outcome driver.Outcome) bool {
	q.begin(opFailover)
	defer q.calling.Unlock()
	q.request = binary.AppendUvarint(q.request, uint64(ownerOf(message).id))
	q.request = appendOutcome(q.request, &outcome)
	return q.call(background).Byte() == 1
}

// Release releases a message; see driver.Queue.
func (q *nodeQueue) Release(message *driver.Message) bool {
	if ownerOf(message).released {
		return true
	}
	_, released := q.ReleaseAll([]*driver.Message{message})
	return released
}

// ReleaseAll releases messages; see driver.Queue.
func (q *nodeQueue) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	q.begin(opRelease)
	q.addMessages(messages...)
	asked := time.Now()
	d := q.call(background)
	released = d.Byte() == 1
	leads, took := d.Byte() == 1, time.Duration(d.Uint())
	for n := d.Uint32(); n > 0 && d.Err == nil; n-- {
		id := d.Uint32()
		if at := slices.IndexFunc(messages, func(m *driver.Message) bool { return ownerOf(m).id == id }); at >= 0 {
			left = append(left, messages[at])
		}
	}
	q.calling.Unlock()
	if d.Err != nil {
		return nil, false
	}
	if !released {
		return left, false
	}
	for _, m := range messages {
		ownerOf(m).released = true
	}
	if !leads || time.Since(asked)-took > releaseValidity {
		q.withdraw(messages)
		return nil, false
	}
	return left, true
}

// withdraw reports released messages as not sent, because the release is no longer valid.
func (q *nodeQueue) withdraw(messages []*driver.Message) {
	outcomes := make([]driver.Outcome, len(messages))
	for i := range outcomes {
		outcomes[i] = driver.Outcome{Verdict: driver.Temporary, Text: "nothing was sent: the permission of the leader to send this message was no longer valid", Relay: "this node", At: time.Now()}
	}
	_ = q.ReportAll(messages, outcomes) // after an error, the leader sends the messages again
}

// Report reports an outcome; see driver.Queue.
func (q *nodeQueue) Report(message *driver.Message, outcome driver.Outcome) error {
	return q.ReportAll([]*driver.Message{message}, []driver.Outcome{outcome})
}

// ReportAll reports outcomes; see driver.Queue. The reply brings the next message, so that the following call of Next needs
// no frames.
func (q *nodeQueue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	q.begin(opReport)
	defer q.calling.Unlock()
	if q.ahead == nil && q.ctx.Err() == nil {
		q.request = append(q.request, 1)
	} else {
		q.request = append(q.request, 0)
	}
	q.addMessages(messages...)
	for i := range outcomes {
		q.request = appendOutcome(q.request, &outcomes[i])
	}
	d := q.call(background)
	text := d.Text()
	if len(d.Rest) > 0 {
		q.ahead = q.receiveNext(d)
	}
	if d.Err != nil {
		return d.Err
	}
	return asError(text)
}

// Return returns a message; see driver.Queue. The message that came with a report goes back first, so that it stays behind
// the other one.
func (q *nodeQueue) Return(message *driver.Message) {
	q.calling.Lock()
	ahead := q.ahead
	q.ahead = nil
	q.calling.Unlock()
	for _, m := range []*driver.Message{ahead, message} {
		if m != nil {
			q.giveBack(m)
		}
	}
}

func (q *nodeQueue) giveBack(message *driver.Message) {
	q.begin(opReturn)
	defer q.calling.Unlock()
	q.request = binary.AppendUvarint(q.request, uint64(ownerOf(message).id))
	q.call(background)
}

// individual makes the individual message of a message.
func (q *nodeQueue) individual(of *nodeMessage) (driver.Message, error) {
	q.begin(opIndividual)
	defer q.calling.Unlock()
	q.request = binary.AppendUvarint(q.request, uint64(of.id))
	d := q.call(background)
	text := d.Text()
	if d.Err != nil || text != "" {
		return driver.Message{}, errors.Join(d.Err, asError(text))
	}
	_, _, alone := readMessage(d, content{})
	alone.Owner = of
	return alone, d.Err
}

func asError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
