package smtp

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/delivertest"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestTheDriverKeepsTheContractInEachMode(t *testing.T) {
	for _, grouping := range []string{"auto", "pipelining", "lockstep"} {
		t.Run(grouping, func(t *testing.T) {
			t.Parallel() // it waits for silent next hops
			delivertest.Run(t, func(t *testing.T, timeout time.Duration) *delivertest.Fixture { return fixture(t, grouping, timeout) })
		})
	}
}

func TestTheDriverKeepsTheContractOnAnotherNode(t *testing.T) {
	t.Parallel() // it waits for silent next hops
	delivertest.Run(t, func(t *testing.T, timeout time.Duration) *delivertest.Fixture {
		f := fixture(t, "auto", timeout)
		f.Driver = delivertest.Elsewhere(t, f.Driver)
		return f
	})
}

func fixture(t *testing.T, grouping string, timeout time.Duration) *delivertest.Fixture {
	var mu sync.Mutex
	var got [][]byte
	var watch func([]byte)
	behaviour := delivertest.Accepts
	answers := map[delivertest.Behaviour]map[string]string{
		delivertest.RefusesTemporarily: {atRcpt: "450 4.2.1 later"},
		delivertest.RefusesPermanently: {atRcpt: "550 5.1.1 no such user"},
		delivertest.DropsAfterBody:     {atBody: hangUp},
		delivertest.NeverReplies:       {atBody: silence},
		delivertest.DripsReply:         {atBody: dripping},
		delivertest.Unreachable:        {atConnect: hangUp},
	}
	p := startPeer(t, func(at exchange) string {
		mu.Lock()
		defer mu.Unlock()
		if at.at == atBody {
			if watch != nil {
				watch([]byte(at.line))
			}
			if behaviour == delivertest.Accepts {
				got = append(got, []byte(at.line))
			}
		}
		return answers[behaviour][at.at]
	}, "PIPELINING", "8BITMIME", "SIZE 10000000")
	config := patient(p.addr)
	config.Grouping, config.SendTimeout, config.MaxRecipients = grouping, timeout, 10
	return &delivertest.Fixture{
		Driver: New(config), Relay: p.addr, HasAttachments: true,
		Message: func(n int, text string) *driver.Message {
			to := fmt.Sprintf("r%d@example.com", n)
			return &driver.Message{From: "s@example.com", To: to, Body: []byte("To: " + to + "\r\n\r\n" + text + "\r\n")}
		},
		SetBehaviour: func(b delivertest.Behaviour) {
			mu.Lock()
			defer mu.Unlock()
			behaviour = b
		},
		Behaviours: []delivertest.Behaviour{
			delivertest.RefusesTemporarily, delivertest.RefusesPermanently, delivertest.DropsAfterBody, delivertest.NeverReplies, delivertest.DripsReply, delivertest.Unreachable,
		},
		OnBody: func(f func([]byte)) { watch = f },
		Received: func() [][]byte {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(got)
		},
	}
}
