package remote

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// FuzzFrames reads frames, messages and outcomes from any bytes: they must be read or refused, and what was read must be
// written the same way.
func FuzzFrames(f *testing.F) {
	m := driver.Message{Delivery: fanfare.DeliveryRef{Day: 20_000, Manifest: 7, Position: 3}, From: "a@b.c", To: "d@e.f", Body: []byte("body"), Attachments: []byte("file"), SharedContent: 9, UTF8: true}
	f.Add(link.AppendFrame(nil, kindReply, 5, appendMessage(nil, 1, &m, content{})))
	f.Add(link.AppendFrame(nil, kindReply, 5, appendMessage(nil, 2, &m, content{m.Body, m.Attachments})))
	f.Add(link.AppendFrame(nil, kindCall, 6, appendOutcome(nil, &driver.Outcome{Verdict: driver.Lost, Code: 451, Text: "later", At: time.Unix(1, 2), Class: fanfare.ClassBusy})))
	f.Add(link.AppendFrame(link.AppendFrame(nil, link.Ping, 0), kindEnd, 1, link.AppendText(nil, "an error")))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReader(bytes.NewReader(data))
		for {
			got, err := link.ReadFrame(in)
			if err != nil {
				return
			}
			before := content{[]byte("the body before"), []byte("the files before")}
			d := &link.Decoder{Rest: got.Payload}
			if id, individual, m := readMessage(d, before); d.Err == nil {
				if individual {
					m.Individual = func() (driver.Message, error) { return driver.Message{}, nil }
				}
				again := &link.Decoder{Rest: appendMessage(nil, id, &m, before)}
				id2, _, m2 := readMessage(again, before)
				if again.Err != nil || id2 != id || m2.Delivery != m.Delivery || m2.From != m.From || m2.To != m.To || !bytes.Equal(m2.Body, m.Body) || !bytes.Equal(m2.Attachments, m.Attachments) {
					t.Errorf("%+v is read again as %+v, %v", m, m2, again.Err)
				}
			}
			d = &link.Decoder{Rest: got.Payload}
			if o := readOutcome(d); d.Err == nil {
				again := &link.Decoder{Rest: appendOutcome(nil, &o)}
				if o2 := readOutcome(again); again.Err != nil || o2 != o {
					t.Errorf("%+v is read again as %+v, %v", o, o2, again.Err)
				}
			}
		}
	})
}
