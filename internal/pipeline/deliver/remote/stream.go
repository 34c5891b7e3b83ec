package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A stream is one connection of a node: it calls the queue for the node.
type stream struct {
	node  *Node
	id    uint32
	calls chan link.Frame // closed when the link ends

	mu        sync.Mutex
	next      context.CancelFunc // ends the context of the call of Next that runs
	cancelled uint32             // number of the last call of Next that the node cancelled
	gone      bool               // the link has ended

	// The goroutine of serve uses these fields.
	queue  driver.Queue
	held   []*heldMessage
	lastID uint32
	last   content         // of the message that Next returned last
	lastOf *driver.Message // this message; nil after it was forgotten
	reply  []byte
	failed error // of the last report
}

// heldMessage is a message that the node holds.
type heldMessage struct {
	id       uint32
	message  *driver.Message
	released bool
}

// serve handles the calls of the node until its driver has returned or the link has ended.
func (s *stream) serve(ctx context.Context, queue driver.Queue) error {
	s.queue = queue
	defer context.AfterFunc(ctx, func() { s.node.link.Send(kindStop, s.id) })()
	for f := range s.calls {
		d := &link.Decoder{Rest: f.Payload}
		if f.Kind == kindEnd {
			text := d.Text()
			if s.returnHeld(); text == "" || d.Err != nil {
				return d.Err
			}
			if s.failed != nil {
				return fmt.Errorf("%w (the driver on node %s: %s)", s.failed, s.node.name, text)
			}
			return errors.New(text)
		}
		s.reply = s.reply[:0]
		s.call(ctx, d)
		if d.Err != nil {
			s.node.link.End(d.Err)
			break
		}
		s.node.link.Send(kindReply, s.id, s.reply)
	}
	s.returnHeld()
	s.awaitSilence()
	return errLost
}

// returnHeld returns the messages whose body was not released. The owner of the queue settles the others as lost.
func (s *stream) returnHeld() {
	for _, h := range slices.Backward(s.held) {
		if !h.released {
			s.queue.Return(h.message)
		}
	}
	s.held = slices.DeleteFunc(s.held, func(h *heldMessage) bool { return !h.released })
}

// awaitSilence waits until the node has certainly closed its connection, if it may be sending a message.
func (s *stream) awaitSilence() {
	if len(s.held) > 0 {
		<-time.After(time.Until(s.node.certainlySilent()))
	}
}

// call makes a call of the node, and sets the reply.
func (s *stream) call(ctx context.Context, d *link.Decoder) {
	switch op := op(d.Byte()); op {
	case opNext:
		s.callNext(ctx, d)
	case opTake:
		leader, most := s.message(d), d.Uint32()
		if d.Err != nil {
			return
		}
		before := len(s.held)
		for _, m := range s.queue.TakeSameContent(nil, leader.message, int(most)) {
			s.hold(m)
		}
		s.reply = binary.AppendUvarint(s.reply, uint64(len(s.held)-before))
		for _, h := range s.held[before:] {
			s.reply = appendMessage(s.reply, h.id, h.message, content{leader.message.Body, leader.message.Attachments})
		}
	case opFailover:
		h, outcome := s.message(d), readOutcome(d)
		if d.Err != nil {
			return
		}
		passed := s.queue.Failover(h.message, outcome)
		if passed {
			s.forget(h.id)
		}
		s.replyBool(passed)
	case opRelease:
		s.callRelease(d)
	case opReport:
		s.callReport(ctx, d)
	case opReturn:
		h := s.message(d)
		if d.Err != nil {
			return
		}
		s.queue.Return(h.message)
		s.forget(h.id)
	case opIndividual:
		s.callIndividual(d)
	default:
		d.Fail()
	}
}

// callNext calls Next. The reply is an error text, and a message if there is one.
func (s *stream) callNext(ctx context.Context, d *link.Decoder) {
	number, wait := d.Uint32(), d.Byte() == 1
	if d.Err != nil {
		return
	}
	if wait {
		next, cancel := context.WithCancel(ctx)
		defer cancel()
		s.mu.Lock()
		if s.next = cancel; s.gone || s.cancelled == number {
			cancel()
		}
		s.mu.Unlock()
		ctx = next
	}
	message, err := s.queue.Next(ctx, wait)
	s.replyError(err)
	s.replyNext(message)
}

// replyNext appends what Next returned.
func (s *stream) replyNext(message *driver.Message) {
	if message == nil {
		return
	}
	s.hold(message)
	s.reply = appendMessage(s.reply, s.lastID, message, s.last)
	s.last, s.lastOf = content{message.Body, message.Attachments}, message
}

// callRelease calls Release, or ReleaseAll for several messages. The reply says whether they are released, whether the lease
// of the leader is valid for long enough, how long the call took, and which of the messages the node still holds.
func (s *stream) callRelease(d *link.Decoder) {
	all := s.messages(d)
	if d.Err != nil {
		return
	}
	began := time.Now()
	left, released := all, false
	if len(all) == 1 {
		if released = s.queue.Release(all[0].message); !released {
			left = nil
		}
	} else {
		messages := make([]*driver.Message, len(all))
		for i, h := range all {
			messages[i] = h.message
		}
		var kept []*driver.Message
		kept, released = s.queue.ReleaseAll(messages)
		left = slices.DeleteFunc(slices.Clone(all), func(h *heldMessage) bool { return !slices.Contains(kept, h.message) })
	}
	s.replyBool(released)
	took := time.Since(began)
	s.replyBool(s.node.hub.options.Leads(releaseValidity))
	s.reply = binary.AppendUvarint(s.reply, uint64(took))
	s.reply = binary.AppendUvarint(s.reply, uint64(len(left)))
	for _, h := range left {
		h.released = released
		s.reply = binary.AppendUvarint(s.reply, uint64(h.id))
	}
	for _, id := range idsWithout(all, left) {
		s.forget(id)
	}
}

func idsWithout(all, without []*heldMessage) (ids []uint32) {
	for _, h := range all {
		if !slices.Contains(without, h) {
			ids = append(ids, h.id)
		}
	}
	return ids
}

// callReport calls Report, or ReportAll for several messages. The reply is an error text, and the next message if the node
// asks for it and there is one: a node calls Next after a report anyway. If it does not, it holds a message of which no body
// was begun, and this message is returned when it returns another one or when its driver ends.
func (s *stream) callReport(ctx context.Context, d *link.Decoder) {
	withNext := d.Byte() == 1
	all := s.messages(d)
	if d.Err != nil {
		return
	}
	messages, outcomes := make([]*driver.Message, len(all)), make([]driver.Outcome, len(all))
	ids := make([]uint32, len(all))
	for i, h := range all {
		messages[i], outcomes[i], ids[i] = h.message, readOutcome(d), h.id
	}
	if d.Err != nil {
		return
	}
	var err error
	if len(all) == 1 {
		err = s.queue.Report(messages[0], outcomes[0])
	} else {
		err = s.queue.ReportAll(messages, outcomes)
	}
	for _, id := range ids {
		s.forget(id)
	}
	s.replyError(err)
	if err != nil {
		s.failed = err
	} else if withNext {
		next, _ := s.queue.Next(ctx, false) // the node's own call gets the error
		s.replyNext(next)
	}
}

// callIndividual makes an individual message. The reply is an error text, and the message if there is no error.
func (s *stream) callIndividual(d *link.Decoder) {
	h := s.message(d)
	if d.Err != nil || h.message.Individual == nil {
		d.Fail()
		return
	}
	alone, err := h.message.Individual()
	s.replyError(err)
	if err == nil {
		s.reply = appendMessage(s.reply, h.id, &alone, content{})
	}
}

func (s *stream) hold(m *driver.Message) {
	s.lastID++
	s.held = append(s.held, &heldMessage{s.lastID, m, false})
}

// forget forgets a message that the node no longer holds. The memory of its body may now be used for another message; that
// of its attachments never changes.
func (s *stream) forget(id uint32) {
	s.held = slices.DeleteFunc(s.held, func(h *heldMessage) bool {
		if h.id == id && s.lastOf == h.message {
			s.last.body, s.lastOf = nil, nil
		}
		return h.id == id
	})
}

// message reads the id of a message that the node holds.
func (s *stream) message(d *link.Decoder) *heldMessage {
	id := d.Uint32()
	at := slices.IndexFunc(s.held, func(h *heldMessage) bool { return h.id == id })
	if d.Err == nil && at < 0 {
		d.Fail()
	}
	if d.Err != nil {
		return nil
	}
	return s.held[at]
}

// messages reads the number of messages and their ids.
func (s *stream) messages(d *link.Decoder) (all []*heldMessage) {
	n := d.Uint32()
	if d.Err == nil && (n == 0 || int(n) > len(s.held)) {
		d.Fail()
	}
	for range n {
		if d.Err != nil {
			return nil
		}
		h := s.message(d)
		if h != nil && slices.Contains(all, h) { // the queue must not settle it twice
			d.Fail()
		}
		all = append(all, h)
	}
	return all
}

func (s *stream) replyBool(b bool) {
	if b {
		s.reply = append(s.reply, 1)
	} else {
		s.reply = append(s.reply, 0)
	}
}

// replyError appends the text of an error, "" for none.
func (s *stream) replyError(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.reply = link.AppendText(s.reply, text)
}

// cancel ends the context of a call of Next: of the one that runs, or of the one that is about to run.
func (s *stream) cancel(payload []byte) {
	d := &link.Decoder{Rest: payload}
	number := d.Uint32()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancelled = number; s.next != nil {
		s.next()
	}
}

// interrupt ends a call of Next that runs, because the link has ended.
func (s *stream) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone = true; s.next != nil {
		s.next()
	}
}
