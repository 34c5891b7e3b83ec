package move_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
)

// clients write and read a Switch from several goroutines, and know what must be
// there. Each has keys of its own; the ids of held batches are the one thing they
// share, which they take from a counter as the record does.
type clients struct {
	t    *testing.T
	s    *move.Switch
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	wrote int
	more  *sync.Cond
}

type client struct {
	*clients
	id      int64
	random  *rand.Rand
	filters map[int64]string // number: text
	paused  map[fanfare.Day]map[int64]string
	next    int64
}

func startClients(t *testing.T, s *move.Switch, n int) *clients {
	c := &clients{t: t, s: s, stop: make(chan struct{})}
	c.more = sync.NewCond(&c.mu)
	for id := range n {
		one := &client{clients: c, id: int64(id + 1), random: rand.New(rand.NewPCG(9, uint64(id))), filters: map[int64]string{}, paused: map[fanfare.Day]map[int64]string{}}
		c.done.Go(func() {
			for {
				select {
				case <-c.stop:
					one.check()
					return
				default:
				}
				if err := one.step(); err != nil {
					t.Errorf("client %d: %v", one.id, err)
					return
				}
				c.mu.Lock()
				c.wrote++
				c.mu.Unlock()
				c.more.Broadcast()
			}
		})
	}
	return c
}

// after waits until so many more steps were made.
func (c *clients) after(steps int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for until := c.wrote + steps; c.wrote < until && !c.t.Failed(); {
		c.more.Wait()
	}
}

// end lets all clients look at what is there, and returns when they have.
func (c *clients) end() {
	close(c.stop)
	c.done.Wait()
}

var errTurned = errors.New("thought better of it")

// step changes something, and reads its own writes.
func (c *client) step() error {
	ctx := c.t.Context()
	c.next++
	key := c.id<<24 | c.next
	switch c.random.IntN(10) {
	case 0, 1, 2, 3:
		return c.pause(ctx, key)
	case 4: // a transaction that is not kept
		err := c.s.Control().Write(ctx, func(s store.Session) error {
			return errors.Join(insertIn(s, "filters", [][]any{{key, "never"}}), errTurned)
		})
		if !errors.Is(err, errTurned) {
			return fmt.Errorf("a transaction that failed: %w", err)
		}
		return nil
	case 5: // one that removes
		return c.forget(ctx)
	case 6:
		return c.s.Control().Scrub(ctx, [][]byte{[]byte("nobody")})
	default:
		text := fmt.Sprintf("text %d", c.random.Int())
		if err := insert(ctx, c.s.Control(), "filters", [][]any{{key, text}}); err != nil {
			return err
		}
		c.filters[key] = text
		return nil
	}
}

// pause writes a switch in one of some days, of which new ones are made, under a
// number that the part gives.
func (c *client) pause(ctx context.Context, key int64) error {
	day := today + fanfare.Day(c.random.IntN(4))
	part, err := c.s.Day(ctx, day, true)
	if err != nil {
		return err
	}
	var number int64
	err = part.Write(ctx, func(s store.Session) error {
		if err := s.Each("history_new", func(r store.Row) error { number = r.Int64(0); return nil }); err != nil {
			return err
		}
		return s.Run("switch", key, int64(1), "paused", fmt.Sprint(number), int64(0))
	})
	if err != nil {
		return err
	}
	if c.paused[day] == nil {
		c.paused[day] = map[int64]string{}
	}
	c.paused[day][key] = fmt.Sprint(number)
	if len(c.paused[day])%5 == 0 { // and takes one away again
		for key := range c.paused[day] {
			delete(c.paused[day], key)
			return part.Write(ctx, func(s store.Session) error { return s.Run("unswitch", key, int64(1)) })
		}
	}
	return c.look(ctx, part, day, key)
}

// look reads what was written just now.
func (c *client) look(ctx context.Context, part store.Part, day fanfare.Day, key int64) error {
	found := false
	err := part.Read(ctx, func(s store.Session) error {
		return s.Each("copy_switches", func(r store.Row) error {
			found = found || r.Int64(0) == key && r.Text(3) == c.paused[day][key]
			return nil
		}, key-1, int64(1)<<40, int64(1))
	})
	if err == nil && !found {
		err = fmt.Errorf("switch %x of %s is not there", key, day)
	}
	return err
}

func (c *client) forget(ctx context.Context) error {
	for number := range c.filters {
		c.filters[number] = ""
		return c.s.Control().Erase(ctx, func(s store.Session) error {
			return s.EachOf("filter_empty", 2, func(int) []any { return []any{number} }, func(int, store.Row) error { return nil })
		})
	}
	return nil
}

// check looks whether all that was kept is there, and nothing else of this client.
func (c *client) check() {
	filters := map[int64]string{}
	read := func(part store.Part, table string, row func(store.Row), after ...any) {
		err := part.Read(c.t.Context(), func(s store.Session) error {
			return s.Each("copy_"+table, func(r store.Row) error {
				if r.Int64(0)>>24 == c.id {
					row(r)
				}
				return nil
			}, append(after, int64(1)<<40)...)
		})
		if err != nil {
			c.t.Error(err)
		}
	}
	read(c.s.Control(), "filters", func(r store.Row) { filters[r.Int64(0)] = r.Text(1) }, int64(0))
	if !maps.Equal(filters, c.filters) {
		c.t.Errorf("client %d finds %d filters and has written %d", c.id, len(filters), len(c.filters))
	}
	for day, want := range c.paused {
		part, err := c.s.Day(c.t.Context(), day, false)
		if err != nil {
			c.t.Error(err)
			continue
		}
		got := map[int64]string{}
		read(part, "switches", func(r store.Row) { got[r.Int64(0)] = r.Text(3) }, int64(0), int64(0))
		if !maps.Equal(got, want) {
			c.t.Errorf("client %d finds %d switches of %s and has written %d", c.id, len(got), day, len(want))
		}
	}
}
