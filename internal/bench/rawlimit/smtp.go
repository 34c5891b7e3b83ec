package rawlimit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// differentBodies is the number of bodies that the raw sender uses in turn. It is so
// large that none stays in a CPU cache until its next turn.
const differentBodies = 4096

type senderSpec struct {
	Addr, Sample string
	Count        int
	TLS          bool
	Seed         uint64
	Recipients   int // of a message that is the same for all; 0: each message is different
}

// SenderPart sends prepared mails as fast as the sink accepts them.
func SenderPart(ctx context.Context, spec senderSpec, _ io.Reader, out *json.Encoder) error {
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
		to[i] = loadgen.Person(i).Address()
	}
	b := smtp.Blaster{Config: smtp.Config{Hello: "localhost"}}
	b.Config.MaxRecipients = spec.Recipients
	if spec.TLS {
		b.Config.TLS = smtp.TLSOpportunistic
	}
	stats, err := b.Blast(ctx, spec.Addr, loadgen.Connections, spec.Count, func(i int) (string, string, []byte) {
		return "alerts@example.org", to[i], bodies[i%len(bodies)]
	})
	if err != nil {
		return err
	}
	return out.Encode(stats)
}

// A rawRate is the speed of a sender without a product.
type RawRate struct {
	PerSecond         float64
	Sender, SinkMicro float64 // CPU per mail, in microseconds
	Mode              string
}

// SendRaw measures the raw sender against a fresh sink of the same kind (N5).
func SendRaw(l *harness.Env, count int) (RawRate, error) {
	mail, err := takeSample(l)
	if err != nil {
		return RawRate{}, err
	}
	return SendRawMail(l, mail.Path, count, 0)
}

// SendRawMail is SendRaw for a mail in a file, or for one message to a number of
// recipients in each transaction.
func SendRawMail(l *harness.Env, mail string, count, recipients int) (RawRate, error) {
	var r RawRate
	p, err := l.OpenSink(harness.SinkOptions{})
	if err != nil {
		return r, err
	}
	c, err := l.StartPart("blast", senderSpec{Addr: p.Addr, Sample: mail, Count: count, TLS: l.TLS, Seed: l.Seed, Recipients: recipients})
	if err != nil {
		return r, err
	}
	line, err := c.ReadLine()
	if err != nil {
		return r, err
	}
	var stats struct {
		Taken   int           `json:"taken"`
		Elapsed time.Duration `json:"elapsed_nanos"`
		Mode    string        `json:"mode"`
	}
	if err := json.Unmarshal(line, &stats); err != nil {
		return r, c.WithLog(err)
	}
	if err := c.Wait(); err != nil {
		return r, err
	}
	sinkCPU := p.Usage().CPU
	sum, err := p.Finish()
	if err != nil {
		return r, err
	}
	if stats.Taken != count || p.Builtin && sum.Accepted != int64(count) {
		return r, fmt.Errorf("the raw sender sent to %d of %d recipients, but the sink counted %d", stats.Taken, count, sum.Accepted)
	}
	r.PerSecond, r.Mode = float64(count)/stats.Elapsed.Seconds(), stats.Mode
	r.Sender = float64(c.Final.CPU.Microseconds()) / float64(count)
	r.SinkMicro = float64(sinkCPU.Microseconds()) / float64(count)
	return r, nil
}

// SMTPSource measures smtp-source of Postfix in the same way.
func SMTPSource(l *harness.Env, program string, count int) (perSecond float64, err error) {
	p, err := l.OpenSink(harness.SinkOptions{})
	if err != nil {
		return 0, err
	}
	started := time.Now()
	c, err := l.Spawn("smtp-source", nil, program, "-d", "-s", fmt.Sprint(loadgen.Connections), "-l", "1024", "-m", fmt.Sprint(count),
		"-f", "alerts@example.org", "-t", loadgen.Person(0).Address(), p.Addr)
	if err != nil {
		return 0, err
	}
	if err := c.Wait(); err != nil {
		return 0, err
	}
	elapsed := time.Since(started)
	_, err = p.Finish()
	return float64(count) / elapsed.Seconds(), err
}
