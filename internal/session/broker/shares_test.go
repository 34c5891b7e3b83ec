package broker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// crowd opens n sessions, of the two priorities in turn, whose clients each send some requests. It returns the priorities by the
// number of the session.
func crowd(t *testing.T, b *Broker, n, requests int, priorities [2]int) (map[uint64]int, []*testClient) {
	priority := map[uint64]int{}
	var clients []*testClient
	for k := range n {
		info := open(t, b, session.Options{Worker: "echo", Priority: priorities[k%2], Resends: -1})
		priority[info.Number] = priorities[k%2]
		c := attach(t, b, info.ID, "one", 0)
		c.send(1, numbered(1, requests)...)
		clients = append(clients, c)
	}
	for _, c := range clients {
		c.until("accepted", func() bool { return c.accepted == uint64(requests) })
	}
	return priority, clients
}

func TestSessionsShareInstancesByPriority(t *testing.T) {
	for _, priorities := range [][2]int{{25, 75}, {1, 10}, {50, 50}, {100, 99}} {
		t.Run(fmt.Sprint(priorities), func(t *testing.T) {
			b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 1, Prefetch: 1}))
			const sessions, each = 1000, 100
			priority, _ := crowd(t, b, sessions, each, priorities)
			var instances []*testInstance
			for k := range 8 {
				instances = append(instances, join(t, b, "echo", fmt.Sprint("instance-", k), 1))
			}
			// As long as each session has requests: until the sessions of the higher priority have used up their own.
			total := sessions / 2 * each * (priorities[0] + priorities[1]) / max(priorities[0], priorities[1]) * 9 / 10
			got := map[uint64]int{}
			for n := 0; n < total; n++ {
				i := instances[n%8]
				task := i.next()
				got[task.Session]++
				i.answer(frame.Result{Tag: task.Tag, Micros: 1000})
			}
			sum := map[int]int{}
			for number, p := range priority {
				sum[p] += got[number]
				if got[number] == 0 {
					t.Errorf("the session %d with priority %d got nothing of %d tasks", number, p, total)
				}
				weights := sessions / 2 * (priorities[0] + priorities[1])
				want := float64(total) * float64(p) / float64(weights)
				if d := float64(got[number]) - want; d > want*0.05+2 || d < -want*0.05-2 { // a task in steps
					t.Errorf("the session %d with priority %d got %d tasks, want %.1f", number, p, got[number], want)
				}
			}
			if priorities[0] != priorities[1] {
				share := float64(sum[priorities[0]]) / float64(total)
				want := float64(priorities[0]) / float64(priorities[0]+priorities[1])
				if share < want*0.95 || share > want*1.05 {
					t.Errorf("the share of priority %d is %.4f, want %.4f", priorities[0], share, want)
				}
			}
		})
	}
}

func TestMaxInstancesLimitsTheInstancesOfASession(t *testing.T) {
	b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 2, Prefetch: 1}))
	narrow := open(t, b, session.Options{Worker: "echo", MaxInstances: 2, Resends: -1})
	wide := open(t, b, session.Options{Worker: "echo", Resends: -1})
	var instances []*testInstance
	for k := range 5 {
		instances = append(instances, join(t, b, "echo", fmt.Sprint("instance-", k), 2))
	}
	c := attach(t, b, narrow.ID, "one", 0)
	c.send(1, numbered(1, 500)...)
	c.until("accepted", func() bool { return c.accepted == 500 })
	info := func() session.Info {
		got, err := b.Session(testService, narrow.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := info(); got.Running != 8 || got.Instances != 2 {
		t.Errorf("%d tasks run at %d instances, want 8 at 2", got.Running, got.Instances)
	}
	other := attach(t, b, wide.ID, "one", 0)
	other.send(1, numbered(1, 500)...)
	other.until("accepted", func() bool { return other.accepted == 500 })
	done := map[uint64]int{}
	for done[narrow.Number]+done[wide.Number] < 1000 {
		if got := info(); got.Instances > 2 || got.Running > 8 {
			t.Fatalf("%d tasks run at %d instances", got.Running, got.Instances)
		}
		for _, i := range instances {
			for len(i.tasks) > 0 || i.step(2*time.Millisecond) {
				if len(i.tasks) == 0 {
					continue
				}
				task := i.tasks[0]
				i.tasks = i.tasks[1:]
				done[task.Session]++
				i.answer(frame.Result{Tag: task.Tag, Micros: 1000})
			}
		}
	}
	c.until("all responses", func() bool { return len(c.responses) == 500 })
	other.until("all responses", func() bool { return len(other.responses) == 500 })
}

func TestALimitedSessionMovesToOtherInstances(t *testing.T) {
	b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 1, Prefetch: 1}))
	info := open(t, b, session.Options{Worker: "echo", MaxInstances: 1, Resends: -1})
	first := join(t, b, "echo", "a", 1)
	c := attach(t, b, info.ID, "one", 0)
	c.send(1, numbered(1, 10)...)
	first.until("tasks", func() bool { return len(first.tasks) == 2 })
	second := join(t, b, "echo", "b", 1)
	first.kill()
	go second.serve()
	c.until("all responses", func() bool { return len(c.responses) == 10 })
}

func TestDemandRisesAtOnceAndFallsAfterThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 2, Prefetch: 1}))
		info := open(t, b, session.Options{Worker: "echo", MaxInstances: 8, Resends: -1})
		wanted := func() int {
			synctest.Wait()
			all := b.Demand()
			if len(all) != 1 || all[0].Service != testService || all[0].Worker != "echo" {
				t.Fatalf("%+v", all)
			}
			return all[0].Instances
		}
		if wanted() != 0 {
			t.Errorf("an idle session wants %d instances", wanted())
		}
		c := attach(t, b, info.ID, "one", 0)
		c.send(1, numbered(1, 9)...)
		if wanted() != 3 { // 9 requests, 4 per instance
			t.Errorf("9 requests want %d instances", wanted())
		}
		c.send(10, numbered(10, 91)...)
		if wanted() != 8 {
			t.Errorf("100 requests want %d instances, want the maximum", wanted())
		}
		least := open(t, b, session.Options{Worker: "echo", MinInstances: 2, Resends: -1})
		if wanted() != 10 {
			t.Errorf("with a second session %d instances are wanted", wanted())
		}
		if err := b.End(t.Context(), testService, least.ID, false, "test"); err != nil {
			t.Fatal(err)
		}
		i := join(t, b, "echo", "a", 2)
		go i.serve()
		c.until("all responses", func() bool { return len(c.responses) == 100 })
		<-time.After(29 * time.Second)
		if wanted() != 10 {
			t.Errorf("%d instances are wanted after 29 s", wanted())
		}
		<-time.After(3 * time.Second)
		if wanted() != 0 {
			t.Errorf("%d instances are wanted after 32 s", wanted())
		}
		i.kill()
		c.close()
	})
}

func TestPrefetchFollowsTheDurationOfTasks(t *testing.T) {
	for _, c := range []struct {
		micros uint32
		want   int
	}{{3_000_000, 2}, {1000, 3}, {100, 21}, {1, maxAutoPrefetch + 1}} {
		b := startBroker(t, newMemoryLog(), define(echo))
		info := open(t, b, session.Options{Worker: "echo", Resends: -1})
		i := join(t, b, "echo", "a", 1)
		client := attach(t, b, info.ID, "one", 0)
		client.send(1, numbered(1, 3000)...)
		for range 500 {
			i.answer(frame.Result{Tag: i.next().Tag, Micros: c.micros})
		}
		client.until("500 responses", func() bool { return len(client.responses) == 500 })
		if got, _ := b.Session(testService, info.ID); got.Running != int64(c.want) {
			t.Errorf("tasks of %d us: %d are in flight, want %d", c.micros, got.Running, c.want)
		}
	}
}
