package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"fanfare.dev/fanfare/client/session"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// RabbitMQ is measured as its documentation recommends for requests with responses. Requests
// that need not survive: a transient queue, manual acknowledgement with a prefetch limit, and
// direct reply-to. Durable requests: quorum queues for requests and for responses, persistent
// messages, and publisher confirms; a request is acknowledged when its response is confirmed.

const (
	rabbitQueue     = "work"
	rabbitPrefetch  = 300 // the documentation finds the highest throughput between 100 and 300
	rabbitMost      = 4096
	rabbitDirect    = "amq.rabbitmq.reply-to"
	rabbitAckEach   = 64 // one acknowledgement covers so many transient requests
	rabbitInstances = instances
)

// rabbitSpec is what a process that uses RabbitMQ is told.
type rabbitSpec struct {
	URL      string
	Durable  bool
	Clients  int // 0: answer requests
	Requests int
	Size     int
}

// RabbitMQPart is a process that sends requests through RabbitMQ, or one that answers them until its input ends.
func RabbitMQPart(ctx context.Context, spec rabbitSpec, in io.Reader, out *json.Encoder) error {
	if spec.Clients == 0 {
		return answerRabbitMQ(ctx, spec, in, out)
	}
	total, err := requestRabbitMQ(ctx, spec)
	if err != nil {
		return err
	}
	return out.Encode(total)
}

// openRabbitMQ opens a connection with one channel, and declares the queue of requests.
func openRabbitMQ(spec rabbitSpec) (*amqp.Connection, *amqp.Channel, error) {
	conn, err := amqp.Dial(spec.URL)
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	if err == nil {
		_, err = declareRabbitMQ(ch, rabbitQueue, spec.Durable)
	}
	if err == nil && spec.Durable {
		err = ch.Confirm(false)
	}
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, ch, nil
}

func declareRabbitMQ(ch *amqp.Channel, name string, durable bool) (amqp.Queue, error) {
	if durable {
		return ch.QueueDeclare(name+"-durable", true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	}
	return ch.QueueDeclare(name, false, false, false, false, nil)
}

// answerRabbitMQ answers each request with its own body.
func answerRabbitMQ(ctx context.Context, spec rabbitSpec, in io.Reader, out *json.Encoder) error {
	conn, ch, err := openRabbitMQ(spec)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the experiment is over
	if err := ch.Qos(rabbitPrefetch, 0, false); err != nil {
		return err
	}
	queue, err := declareRabbitMQ(ch, rabbitQueue, spec.Durable)
	if err != nil {
		return err
	}
	requests, err := ch.ConsumeWithContext(ctx, queue.Name, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	answer := answerTransient
	if spec.Durable {
		answer = answerDurable
	}
	failed := make(chan error, 1)
	go func() { failed <- answer(ctx, ch, requests) }()
	if err := harness.RunUntilEnd(ctx, spec.URL, in, out); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func answerTransient(ctx context.Context, ch *amqp.Channel, requests <-chan amqp.Delivery) error {
	unacknowledged := 0
	for d := range requests {
		if err := ch.PublishWithContext(ctx, "", d.ReplyTo, false, false, amqp.Publishing{CorrelationId: d.CorrelationId, Body: d.Body}); err != nil {
			return err
		}
		if unacknowledged++; unacknowledged == rabbitAckEach || len(requests) == 0 {
			unacknowledged = 0
			if err := d.Ack(true); err != nil {
				return err
			}
		}
	}
	return nil
}

// answerDurable acknowledges a request when its response is confirmed. Confirmations arrive in
// the order of the responses.
func answerDurable(ctx context.Context, ch *amqp.Channel, requests <-chan amqp.Delivery) error {
	confirmed := ch.NotifyPublish(make(chan amqp.Confirmation, rabbitPrefetch))
	answered := make(chan amqp.Delivery, rabbitPrefetch)
	failed := make(chan error, 1)
	go func() {
		for c := range confirmed {
			d := <-answered
			if !c.Ack {
				failed <- fmt.Errorf("the response to request %s was refused", d.CorrelationId)
				return
			}
			if err := d.Ack(false); err != nil {
				failed <- err
				return
			}
		}
	}()
	for d := range requests {
		select {
		case err := <-failed:
			return err
		case answered <- d:
		}
		response := amqp.Publishing{CorrelationId: d.CorrelationId, Body: d.Body, DeliveryMode: amqp.Persistent}
		if err := ch.PublishWithContext(ctx, "", d.ReplyTo, false, false, response); err != nil {
			return err
		}
	}
	return nil
}

// requestRabbitMQ sends requests over several connections, many at a time, and waits for all responses.
func requestRabbitMQ(ctx context.Context, spec rabbitSpec) (time.Duration, error) {
	each := spec.Requests / spec.Clients
	failed := make(chan error, spec.Clients)
	var list []*rabbitRequester
	for i := range spec.Clients {
		conn, ch, err := openRabbitMQ(spec)
		if err != nil {
			return 0, err
		}
		defer conn.Close() //nolint:errcheck // the experiment is over
		r := &rabbitRequester{ch: ch, spec: spec, requests: each, replyTo: rabbitDirect, free: make(chan struct{}, rabbitMost)}
		if spec.Durable {
			queue, err := declareRabbitMQ(ch, fmt.Sprintf("responses-%d", i), true)
			if err != nil {
				return 0, err
			}
			r.replyTo = queue.Name
		}
		if r.responses, err = ch.ConsumeWithContext(ctx, r.replyTo, "", !spec.Durable, false, false, false, nil); err != nil {
			return 0, err
		}
		list = append(list, r)
	}
	started := time.Now()
	for _, r := range list {
		go func() { failed <- r.run(ctx) }()
	}
	for range list {
		if err := <-failed; err != nil {
			return 0, err
		}
	}
	return time.Since(started), nil
}

// A rabbitRequester sends requests over one connection.
type rabbitRequester struct {
	ch        *amqp.Channel
	spec      rabbitSpec
	requests  int
	replyTo   string
	responses <-chan amqp.Delivery
	free      chan struct{} // limits the requests without responses
}

func (r *rabbitRequester) run(ctx context.Context) error {
	received := make(chan error, 1)
	go func() { received <- r.receive() }()
	confirmed := make(chan error, 1)
	if r.spec.Durable {
		confirmations := r.ch.NotifyPublish(make(chan amqp.Confirmation, rabbitMost))
		go func() { confirmed <- awaitConfirmations(confirmations, r.requests) }()
	} else {
		confirmed <- nil
	}
	message := amqp.Publishing{ReplyTo: r.replyTo, Body: make([]byte, r.spec.Size)}
	queue := rabbitQueue
	if r.spec.Durable {
		message.DeliveryMode = amqp.Persistent
		queue += "-durable"
	}
	for i := range r.requests {
		select {
		case r.free <- struct{}{}:
		case err := <-received:
			return err
		}
		message.CorrelationId = fmt.Sprint(i)
		if err := r.ch.PublishWithContext(ctx, "", queue, false, false, message); err != nil {
			return err
		}
	}
	return errors.Join(<-confirmed, <-received)
}

// receive returns when each request has its response.
func (r *rabbitRequester) receive() error {
	n := 0
	for d := range r.responses {
		<-r.free
		n++
		if last := n == r.requests; r.spec.Durable && (n%rabbitAckEach == 0 || last) {
			if err := d.Ack(true); err != nil {
				return err
			}
		}
		if n == r.requests {
			return nil
		}
	}
	return fmt.Errorf("%d of %d responses came from RabbitMQ", n, r.requests)
}

func awaitConfirmations(confirmations <-chan amqp.Confirmation, n int) error {
	for range n {
		if c, open := <-confirmations; !open || !c.Ack {
			return errors.New("RabbitMQ did not confirm a request")
		}
	}
	return nil
}

// compareRabbitMQ adds what RabbitMQ reaches with requests of 4 bytes, if it is installed.
func compareRabbitMQ(l *harness.Env, r *report.Record) error {
	if !harness.HasRabbitMQ() {
		r.Note("RabbitMQ is not compared: its package rabbitmq-server is not installed")
		return nil
	}
	q, err := l.StartRabbitMQ()
	if err != nil {
		return err
	}
	for _, load := range []workload{
		{session.Interactive, 4, l.Size(200_000, 800)},
		{session.Durable, 4, l.Size(40_000, 800)},
	} {
		rate, err := measureRabbitMQ(l, rabbitSpec{URL: q.URL, Durable: load.kind == session.Durable, Clients: clients, Requests: load.requests / clients * clients, Size: load.size})
		if err != nil {
			return errors.Join(err, q.Stop())
		}
		r.AddPoint(report.Point{At: "RabbitMQ, " + load.name(), Value: rate})
	}
	r.Note("RabbitMQ: %d connections that send, %d processes that answer with a prefetch of %d; interactive by a transient queue and direct reply-to, durable by quorum queues with publisher confirms", clients, rabbitInstances, rabbitPrefetch)
	return q.Stop()
}

// measureRabbitMQ returns requests per second.
func measureRabbitMQ(l *harness.Env, spec rabbitSpec) (float64, error) {
	answering := spec
	answering.Clients = 0
	var answerers []*harness.Process
	for range rabbitInstances {
		c, err := l.StartPart("rabbitmq", answering)
		if err != nil {
			return 0, err
		}
		answerers = append(answerers, c)
		if _, err := c.ReadLine(); err != nil { // it is ready
			return 0, err
		}
	}
	requester, err := l.StartPart("rabbitmq", spec)
	if err != nil {
		return 0, err
	}
	var total time.Duration
	if err := requester.ReadJSON(&total); err != nil {
		return 0, err
	}
	err = requester.Wait()
	for _, c := range answerers {
		err = errors.Join(err, c.Wait())
	}
	return float64(spec.Requests) / total.Seconds(), err
}
