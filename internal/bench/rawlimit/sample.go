package rawlimit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/sink"
)

// takeSample lets a server of its own send the mail of the experiment to one person.
func takeSample(l *harness.Env) (*harness.MailSample, error) {
	if l.Sample != nil {
		return l.Sample, nil
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
	s, err := l.StartServer(harness.SampleData)
	if err != nil {
		return nil, err
	}
	if _, err := s.API.Apply(l.Ctx, loadgen.Configuration(addr.String(), "1s"), false); err != nil {
		return nil, err
	}
	line := loadgen.AppendSubscription(nil, loadgen.Person(0), l.Seed, loadgen.NotifyFilter)
	if _, err := s.API.ImportSubscriptions(l.Ctx, bytes.NewReader(line), nil); err != nil {
		return nil, err
	}
	if _, err := s.API.Publish(l.Ctx, "news", loadgen.NewsOfTheDay(), client.PublishOptions{}); err != nil {
		return nil, err
	}
	select {
	case mail := <-came:
		l.Sample = &harness.MailSample{Path: l.File("sample.eml"), Size: len(mail)}
		if err := os.WriteFile(l.Sample.Path, mail, 0o600); err != nil {
			return nil, err
		}
	case <-time.After(30 * time.Second):
		return nil, s.WithLog(errors.New("the sample mail did not arrive"))
	case <-l.Ctx.Done():
		return nil, l.Ctx.Err()
	}
	return l.Sample, s.Stop()
}

// variants returns n different mails with the size of the sample. They have the
// recipient and the link of other people, which have the same length.
func variants(mail []byte, n int, seed uint64) ([][]byte, error) {
	address, link := loadgen.Person(0).AppendAddress(nil), loadgen.Person(0).AppendLink(nil, seed)
	if !bytes.Contains(mail, address) || !bytes.Contains(mail, link) {
		return nil, fmt.Errorf("the sample mail lacks the address %s or the link %s", address, link)
	}
	all := make([][]byte, n)
	for i := range all {
		p := loadgen.Person(i)
		m := bytes.ReplaceAll(mail, address, p.AppendAddress(nil))
		all[i] = bytes.ReplaceAll(m, link, p.AppendLink(nil, seed))
	}
	return all, nil
}
