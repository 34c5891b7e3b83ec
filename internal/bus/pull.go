package bus

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A pull receives the messages of one consumer. Its subscription lasts as long as the consumer, and not as long as a request: a message that arrives after
// its request is given up, because the process was paused or a heartbeat was late, is still received. Otherwise it would be delivered again only
// after its lease.
type pull struct {
	conn     *nats.Conn
	sub      *nats.Subscription
	messages chan *nats.Msg
	next     string // subject of requests
	inbox    string // prefix of the subjects of replies
	requests int
	reply    string // subject of the statuses of the last request
	expected int    // messages that the last request can still bring; 0 if there is no request
}

const (
	// fetchTime is the duration of one request, and fetchBeat the interval of the server's
	// heartbeats in it.
	fetchTime = 10 * time.Second
	fetchBeat = time.Second
	// maxMissed is the number of heartbeats after which a request is given up.
	maxMissed = 2
	// pullBuffer is more than all requests within a fetchTime can bring, with their heartbeats.
	pullBuffer = 1024
)

var errSilent = errors.New("the bus has sent no heartbeat")

// newPull subscribes to the replies to requests for messages of a consumer.
func newPull(conn *nats.Conn, consumer jetstream.Consumer) (*pull, error) {
	info := consumer.CachedInfo()
	p := &pull{
		conn: conn, messages: make(chan *nats.Msg, pullBuffer), inbox: conn.NewInbox(),
		next: fmt.Sprintf(jetstream.DefaultAPIPrefix+"CONSUMER.MSG.NEXT.%s.%s", info.Stream, info.Name),
	}
	var err error
	if p.sub, err = conn.ChanSubscribe(p.inbox+".*", p.messages); err != nil {
		return nil, err
	}
	return p, nil
}

// request asks for n messages.
func (p *pull) request(n int) error {
	p.requests++
	p.reply, p.expected = fmt.Sprintf("%s.%d", p.inbox, p.requests), n
	return p.conn.PublishRequest(p.next, p.reply, fmt.Appendf(nil, `{"batch": %d, "expires": %d, "idle_heartbeat": %d}`, n, fetchTime.Nanoseconds(), fetchBeat.Nanoseconds()))
}

// take accounts for what was received, and reports whether it is a message. A status can end the last request, and some statuses are errors.
func (p *pull) take(msg *nats.Msg) (bool, error) {
	status, description := msg.Header.Get("Status"), msg.Header.Get("Description")
	switch {
	case status == "" || len(msg.Data) > 0:
		p.expected = max(0, p.expected-1)
		return true, nil
	case strings.EqualFold(description, "Consumer Deleted"):
		return false, jetstream.ErrConsumerDeleted
	case status == "100" || msg.Subject != p.reply: // a heartbeat, or the end of an earlier request
		return false, nil
	}
	p.expected = 0
	switch status {
	case "408": // its time is over
		return false, nil
	case "503":
		return false, nats.ErrNoResponders
	}
	return false, fmt.Errorf("the bus answered a request for messages with %s %s", status, description)
}

// drop unsubscribes. Received messages are not delivered again before their leases end, unless the consumer is created again.
func (p *pull) drop() {
	if p != nil {
		_ = p.sub.Unsubscribe() // the connection may be closed
	}
}

// end unsubscribes, and returns the messages to the bus that have arrived or are on their way.
func (p *pull) end() {
	if p == nil || p.sub.Drain() != nil || p.conn.FlushTimeout(fetchBeat) != nil {
		return // without a connection, they are delivered again after their lease
	}
	for {
		select {
		case msg := <-p.messages:
			if isMessage, _ := p.take(msg); isMessage {
				_ = p.conn.Publish(msg.Reply, []byte("-NAK")) // as above
			}
		default:
			return
		}
	}
}
