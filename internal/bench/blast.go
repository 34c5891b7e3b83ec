package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// connections to the sink, of the product and of what it is held against.
const connections = 50

// differentBodies is how many bodies the raw sender turns round: enough that
// none stays in a cache of the CPU until its next turn.
const differentBodies = 4096

type blastSpec struct {
	Addr, Sample string
	Count        int
	TLS          bool
	Seed         uint64
	Recipients   int // of a message that is the same for all; 0: each letter is another
}

// blastPart sends mails that are ready as fast as the sink takes them.
func blastPart(ctx context.Context, spec blastSpec, _ io.Reader, out *json.Encoder) error {
	mail, err := os.ReadFile(spec.Sample)
	if err != nil {
		return err
	}
	bodies := [][]byte{mail}
	if spec.Recipients == 0 {
		if bodies, err = variants(mail, differentBodies, spec.Seed); err != nil {
			return err
		}
	}
	to := make([]string, spec.Count)
	for i := range to {
		to[i] = person(i).address()
	}
	b := smtp.Blaster{Config: smtp.Config{Hello: "localhost"}}
	b.Config.MaxRecipients = spec.Recipients
	if spec.TLS {
		b.Config.TLS = smtp.TLSOpportunistic
	}
	stats, err := b.Blast(ctx, spec.Addr, connections, spec.Count, func(i int) (string, string, []byte) {
		return "alerts@example.org", to[i], bodies[i%len(bodies)]
	})
	if err != nil {
		return err
	}
	return out.Encode(stats)
}

// A rawRate is what a sender without a product came to.
type rawRate struct {
	perSecond         float64
	sender, sinkMicro float64 // CPU per mail, in microseconds
	mode              string
}

// blast measures the raw sender against a fresh sink of the same kind (N5).
func (l *lab) blast(count int) (rawRate, error) {
	mail, err := l.takeSample()
	if err != nil {
		return rawRate{}, err
	}
	return l.blastOf(mail.path, count, 0)
}

// blastOf is blast of a mail in a file, or with recipients of one message for each
// so many.
func (l *lab) blastOf(mail string, count, recipients int) (rawRate, error) {
	var r rawRate
	p, err := l.openPost(postSpec{})
	if err != nil {
		return r, err
	}
	c, err := l.part("blast", blastSpec{Addr: p.addr, Sample: mail, Count: count, TLS: l.TLS, Seed: l.Seed, Recipients: recipients})
	if err != nil {
		return r, err
	}
	line, err := c.line()
	if err != nil {
		return r, err
	}
	var stats struct {
		Taken   int           `json:"taken"`
		Elapsed time.Duration `json:"elapsed_nanos"`
		Mode    string        `json:"mode"`
	}
	if err := json.Unmarshal(line, &stats); err != nil {
		return r, c.failed(err)
	}
	if err := c.wait(); err != nil {
		return r, err
	}
	sinkCPU := p.usage().cpu
	sum, err := p.end()
	if err != nil {
		return r, err
	}
	if stats.Taken != count || p.builtin && sum.Accepted != int64(count) {
		return r, fmt.Errorf("the raw sender sent to %d of %d recipients, and the sink saw %d", stats.Taken, count, sum.Accepted)
	}
	r.perSecond, r.mode = float64(count)/stats.Elapsed.Seconds(), stats.Mode
	r.sender = float64(c.final.cpu.Microseconds()) / float64(count)
	r.sinkMicro = float64(sinkCPU.Microseconds()) / float64(count)
	return r, nil
}

// smtpSource measures the sender of Postfix, at this path, in the same way.
func (l *lab) smtpSource(program string, count int) (perSecond float64, err error) {
	p, err := l.openPost(postSpec{})
	if err != nil {
		return 0, err
	}
	started := time.Now()
	c, err := l.spawn("smtp-source", nil, program, "-d", "-s", fmt.Sprint(connections), "-l", "1024", "-m", fmt.Sprint(count),
		"-f", "alerts@example.org", "-t", person(0).address(), p.addr)
	if err != nil {
		return 0, err
	}
	if err := c.wait(); err != nil {
		return 0, err
	}
	elapsed := time.Since(started)
	_, err = p.end()
	return float64(count) / elapsed.Seconds(), err
}
