package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// A Pool distributes requests over several sessions of one worker in turn.
type Pool struct {
	sessions []*Session
}

// OpenPool opens n sessions with the same options. A name gets the suffixes -1, -2 and so on.
func OpenPool(ctx context.Context, c *client.Client, n int, o Options) (*Pool, error) {
	if n < 1 {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("a pool cannot have %d sessions", n), Hint: "use 1 or more"}
	}
	p := &Pool{}
	for i := range n {
		one := o
		if o.Name != "" {
			one.Name = fmt.Sprintf("%s-%d", o.Name, i+1)
		}
		s, err := Open(ctx, c, one)
		if err != nil {
			return nil, errors.Join(err, p.Close(ctx, false))
		}
		p.sessions = append(p.sessions, s)
	}
	return p, nil
}

// NewPool returns a pool of sessions that exist.
func NewPool(sessions ...*Session) *Pool { return &Pool{sessions} }

// Sessions returns the sessions of the pool.
func (p *Pool) Sessions() []*Session { return p.sessions }

// Close closes all sessions of the pool.
func (p *Pool) Close(ctx context.Context, purge bool) error {
	var failed []error
	for _, s := range p.sessions {
		failed = append(failed, s.Close(ctx, purge))
	}
	return errors.Join(failed...)
}

// A PoolClient is a client of the same name in each session of a pool.
type PoolClient struct {
	clients []*Client
	next    atomic.Uint64
	ready   chan struct{}
	dead    chan *Client
}

// Client connects a client in each session.
func (p *Pool) Client(ctx context.Context, name string, options ...ClientOption) (*PoolClient, error) {
	pc := &PoolClient{ready: make(chan struct{}, 1), dead: make(chan *Client, len(p.sessions))}
	shared := func(cl *Client) { cl.in.ready = pc.ready }
	for _, s := range p.sessions {
		cl, err := s.Client(ctx, name, append([]ClientOption{shared}, options...)...)
		if err != nil {
			return nil, errors.Join(err, pc.Close(ctx))
		}
		pc.clients = append(pc.clients, cl)
		go func() {
			<-cl.dead
			pc.dead <- cl
		}()
	}
	return pc, nil
}

// Clients returns the clients, one for each session.
func (pc *PoolClient) Clients() []*Client { return pc.clients }

// A Sent names a request of a pool.
type Sent struct {
	Session string
	Request uint64
}

// SendRequest sends a request to the next session.
func (pc *PoolClient) SendRequest(ctx context.Context, r Request) (Sent, error) {
	cl := pc.clients[(pc.next.Add(1)-1)%uint64(len(pc.clients))]
	n, err := cl.SendRequest(ctx, r)
	return Sent{cl.session.id, n}, err
}

func (pc *PoolClient) each(do func(*Client) error) error {
	results := make(chan error, len(pc.clients))
	for _, cl := range pc.clients {
		go func() { results <- do(cl) }()
	}
	var failed []error
	for range pc.clients {
		failed = append(failed, <-results)
	}
	return errors.Join(failed...)
}

// Flush does what Flush of each client does.
func (pc *PoolClient) Flush(ctx context.Context) error {
	return pc.each(func(cl *Client) error { return cl.Flush(ctx) })
}

// End does what End of each client does.
func (pc *PoolClient) End(ctx context.Context) error {
	return pc.each(func(cl *Client) error { return cl.End(ctx) })
}

// Close closes all clients.
func (pc *PoolClient) Close(ctx context.Context) error {
	return pc.each(func(cl *Client) error { return cl.Close(ctx) })
}

// A PoolResponse is a response with the id of its session.
type PoolResponse struct {
	Session string
	Response
}

// Responses yields the responses of all sessions, as Client.Responses does for one.
func (pc *PoolClient) Responses(ctx context.Context) iter.Seq2[PoolResponse, error] {
	return func(yield func(PoolResponse, error) bool) {
		for _, cl := range pc.clients {
			if err := cl.in.begin(); err != nil {
				yield(PoolResponse{}, err)
				return
			}
			defer cl.in.stop()
			cl.processed.Store(max(cl.processed.Load(), cl.in.position))
		}
		for {
			finished := 0
			for _, cl := range pc.clients {
				goOn, done, err := cl.drain(func(r Response) bool { return yield(PoolResponse{cl.session.id, r}, nil) })
				if err != nil {
					yield(PoolResponse{}, err)
					return
				}
				if !goOn {
					return
				}
				if done {
					finished++
				}
			}
			if finished == len(pc.clients) {
				return
			}
			select {
			case <-pc.ready:
			case cl := <-pc.dead:
				ok, done := cl.in.peek()
				if !done {
					pc.dead <- cl // for the next turn or loop
				}
				if !ok && !done {
					yield(PoolResponse{}, cl.err)
					return
				}
			case <-ctx.Done():
				yield(PoolResponse{}, ctx.Err())
				return
			}
		}
	}
}
