package delivery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/smtp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

const (
	bouncePeers     = 160 // servers that send bounces at the same time
	bounceHosts     = 4   // addresses that they use if the machine has them: the server accepts 50 connections from one
	bounceMessages  = 900 // in a session; the inbound server ends a session after 1000
	bounceTwice     = 100 // one in this number is sent twice
	bouncesASecond  = 2000
	bounceDomain    = "bounces.example.net"
	bouncePromise   = time.Second // after it no suppressed recipient gets mail
	bounceStatus    = "5.1.1"
	bounceDiagnosis = "550 5.1.1 User unknown"
)

// A bounceSender sends bounces for mails to the return addresses of these mails.
type bounceSender struct {
	at       string         // address at which the server receives mail
	returnTo map[int]string // by number of the person
	tries    int            // bounces that were sent, including those sent twice

	took   time.Duration
	taken  map[int]*atomic.Int64 // when its 250 was read, Unix nanoseconds; 0: not yet
	mu     sync.Mutex
	waits  []float64 // from the end of a message to its 250, in sorted milliseconds
	failed error     // the first
}

func newBounceSender(at string, returnTo map[int]string) *bounceSender {
	b := &bounceSender{at: at, returnTo: returnTo, taken: make(map[int]*atomic.Int64, len(returnTo))}
	for who := range returnTo {
		b.taken[who] = new(atomic.Int64)
	}
	return b
}

// sendAll sends all bounces in a random order at a steady rate.
func (b *bounceSender) sendAll(ctx context.Context, seed uint64, progress func(int)) error {
	people := make([]int, 0, len(b.returnTo))
	for who := range b.returnTo {
		people = append(people, who)
	}
	slices.Sort(people)
	rand.New(rand.NewPCG(seed, 2)).Shuffle(len(people), func(i, j int) { people[i], people[j] = people[j], people[i] })
	next := make(chan int)
	var peers sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range bouncePeerCount() {
		peers.Go(func() {
			if err := b.peer(bounceDialer(i), next); err != nil {
				b.fail(err)
				cancel()
			}
		})
	}
	began := time.Now()
	for i, who := range people {
		times := 1
		if i%bounceTwice == 0 {
			times = 2
		}
		if early := time.Until(began.Add(time.Duration(i) * time.Second / bouncesASecond)); early > 0 {
			_ = harness.Pause(ctx, early) // its end is seen below
		}
		for range times {
			select {
			case next <- who:
				b.tries++
			case <-ctx.Done():
			}
		}
		progress(i)
	}
	close(next)
	peers.Wait()
	b.took = time.Since(began)
	slices.Sort(b.waits)
	if b.failed != nil {
		return b.failed
	}
	return ctx.Err()
}

func (b *bounceSender) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = err
	}
}

// bouncePeerCount returns the number of sending servers. Only Linux has all of
// 127.0.0.0/8.
func bouncePeerCount() int {
	if runtime.GOOS == "linux" {
		return bouncePeers
	}
	return bouncePeers / bounceHosts
}

// bounceDialer connects from the address of a sending server.
func bounceDialer(peer int) *net.Dialer {
	if runtime.GOOS != "linux" {
		return new(net.Dialer)
	}
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+peer%bounceHosts))}}
}

// peer is a mail server that sends bounces in sessions of many.
func (b *bounceSender) peer(from *net.Dialer, next <-chan int) (err error) {
	var session *smtp.Client
	var waits []float64
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.waits = append(b.waits, waits...)
		if session != nil {
			_ = session.Close() // after an error it is lost already
		}
	}()
	for said := 0; ; said++ {
		who, more := <-next
		if session != nil && (!more || said%bounceMessages == 0) {
			if err := session.Quit(); err != nil {
				return err
			}
			session = nil
		}
		if !more {
			return nil
		}
		if session == nil {
			conn, err := from.Dial("tcp", b.at)
			if err != nil {
				return err
			}
			if session, err = smtp.NewClient(conn, "127.0.0.1"); err != nil {
				return err
			}
		}
		wait, err := b.send(session, who)
		if err != nil {
			return fmt.Errorf("send the bounce of person %d: %w", who, err)
		}
		waits = append(waits, report.Millis(wait))
		b.taken[who].CompareAndSwap(0, time.Now().UnixNano())
	}
}

// send sends one bounce and returns how long its 250 took.
func (b *bounceSender) send(session *smtp.Client, who int) (time.Duration, error) {
	if err := session.Mail(""); err != nil {
		return 0, err
	}
	if err := session.Rcpt(b.returnTo[who]); err != nil {
		return 0, err
	}
	body, err := session.Data()
	if err != nil {
		return 0, err
	}
	if _, err := body.Write(deliveryReport(b.returnTo[who], loadgen.Person(who).Address())); err != nil {
		return 0, err
	}
	ended := time.Now()
	err = body.Close() // it waits for the answer
	return time.Since(ended), err
}

// deliveryReport returns a delivery report (RFC 3464) with three parts, as mail servers
// write it.
func deliveryReport(returnTo, who string) []byte {
	return []byte(strings.ReplaceAll(fmt.Sprintf(`Return-Path: <>
From: Mail Delivery System <MAILER-DAEMON@mx.example.org>
To: %[1]s
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="report"

--report
Content-Type: text/plain; charset=us-ascii

The server mx.example.org has a message that it could not deliver.

<%[2]s>: host mail.example.net said: %[3]s

--report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org
Arrival-Date: Fri, 20 Nov 2026 12:00:00 +0000

Final-Recipient: rfc822; %[2]s
Action: failed
Status: %[4]s
Remote-MTA: dns; mail.example.net
Diagnostic-Code: smtp; %[3]s

--report
Content-Type: text/rfc822-headers

Return-Path: <%[1]s>
From: Alerts <alerts@example.org>
To: %[2]s
Subject: Ferry service between Vancouver and Victoria resumes

--report--
`, returnTo, who, bounceDiagnosis, bounceStatus), "\n", "\r\n"))
}
