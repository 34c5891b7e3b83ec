package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// A sample is one mail of the experiment as it comes to the sink, and what the
// raw sender is to send so that both do the same work.
type sample struct {
	path string
	size int
}

// sampleData is the folder of the server that makes it.
const sampleData = "sample"

// takeSample has a server of its own send the experiment's mail to one person.
func (l *lab) takeSample() (*sample, error) {
	if l.sample != nil {
		return l.sample, nil
	}
	came := make(chan []byte, 1)
	mailbox := sink.New(sink.Config{OnMessage: func(_ string, _ []string, body []byte) {
		select {
		case came <- bytes.Clone(body):
		default:
		}
	}})
	addr, err := mailbox.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go mailbox.Serve()    //nolint:errcheck // what goes wrong with it shows as a mail that does not come
	defer mailbox.Close() //nolint:errcheck // it keeps nothing
	s, err := l.serve(sampleData)
	if err != nil {
		return nil, err
	}
	if _, err := s.api.Apply(l.ctx, configuration(addr.String(), "1s"), false); err != nil {
		return nil, err
	}
	line := appendSubscription(nil, person(0), l.Seed, notifyFilter)
	if _, err := s.api.ImportSubscriptions(l.ctx, bytes.NewReader(line), nil); err != nil {
		return nil, err
	}
	if _, err := s.api.Publish(l.ctx, "news", newsOfTheDay(), client.PublishOptions{}); err != nil {
		return nil, err
	}
	select {
	case mail := <-came:
		l.sample = &sample{path: l.file("sample.eml"), size: len(mail)}
		if err := os.WriteFile(l.sample.path, mail, 0o600); err != nil {
			return nil, err
		}
	case <-time.After(30 * time.Second):
		return nil, s.failed(errors.New("the sample mail did not come"))
	case <-l.ctx.Done():
		return nil, l.ctx.Err()
	}
	return l.sample, s.stop()
}

// variants returns n different mails of the sample's size: the recipient and the
// link of person 0 are replaced by those of others, which are as long.
func variants(mail []byte, n int, seed uint64) ([][]byte, error) {
	address, link := person(0).appendAddress(nil), person(0).appendLink(nil, seed)
	if !bytes.Contains(mail, address) || !bytes.Contains(mail, link) {
		return nil, fmt.Errorf("the sample has no %s or no %s", address, link)
	}
	all := make([][]byte, n)
	for i := range all {
		p := person(i)
		m := bytes.ReplaceAll(mail, address, p.appendAddress(nil))
		all[i] = bytes.ReplaceAll(m, link, p.appendLink(nil, seed))
	}
	return all, nil
}
